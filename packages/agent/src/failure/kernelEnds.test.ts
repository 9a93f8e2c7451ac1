import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { causeKinds } from '@muster/common/spec/causes';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readStat } from '../fence/processes.ts';
import { writeProcessRecord } from '../guard/records.ts';
import { KernelLog } from '../health/kernelLog.ts';
import { boottimeMs as realBoottimeMs } from '../probes/boot.ts';
import type { TaskExit } from '../taskFacts/execution.ts';
import { killed } from './failureFixture.ts';
import { KernelEnds } from './kernelEnds.ts';

const task: TaskRef = { jobId: 'job_aaaaaaaaaaaa' as JobId, attempt: 1, nodeRank: 0 };
const key = taskKey(task);
const exit: TaskExit = {
  exitCode: null,
  signal: 'SIGKILL',
  oomKilled: false,
  finishedAtMs: 1,
  statusLost: false,
};
let directory: string;
let nowMs: number;
let running: TaskRef[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-kernel-'));
  nowMs = 100_000;
  running = [task];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function watching(parts: Partial<ConstructorParameters<typeof KernelEnds>[0]> = {}): KernelEnds {
  return new KernelEnds({
    running: () => running.map((each) => ({ task: each })),
    directoryOf: () => directory,
    readKernelLog: () => {},
    boottimeMs: () => nowMs,
    ...parts,
  });
}

function logKill(kills: KernelEnds, pid: number, atMs = nowMs): void {
  const text = `Out of memory: Killed process ${pid} (python3) total-vm:1kB, anon-rss:0kB`;
  kills.kernelRecord({ fromKernel: true, sequence: 1, uptimeMs: atMs, text });
}

const explain = (kills: KernelEnds, failure: TaskFailure = killed) =>
  kills.explain({ key, directory }, { exit, directory, outputPath: '', stopping: false }, failure);

/** A process that stands for the task's own, with a child, whose pid it prints. */
async function aProcess(
  program = 'sh',
  args: readonly string[] = ['-c', 'sleep 600 & echo $!; wait'],
): Promise<{ readonly main: ChildProcess; readonly childPid: number }> {
  const main = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(main.stdout, 'data')) as [Buffer];
  const childPid = Number(line.toString());
  onTestFinished(() => {
    main.kill('SIGKILL');
    try {
      process.kill(childPid, 'SIGKILL');
    } catch {
      // The test has ended it.
    }
  });
  const stat = readStat(main.pid ?? 0);
  writeProcessRecord(directory, {
    key,
    bootId: 'b',
    startedAtMs: 1,
    cgroup: null,
    limitGroups: [],
    mainExit: null,
    main: { pid: main.pid ?? 0, startTicks: stat?.startTicks ?? 0 },
  });
  return { main, childPid };
}

test('the main process: known by its record, also when it was never seen running', async () => {
  const { main } = await aProcess();
  const kills = watching();
  logKill(kills, main.pid ?? 0);
  expect(explain(kills)).toEqual({
    ...killed,
    source: 'kernel',
    kind: 'host_oom',
    blame: 'job',
    message: `Out of memory: Killed process ${main.pid} (python3) total-vm:1kB, anon-rss:0kB`,
  });
});

test('a worker of it: known because it was seen while it ran', async () => {
  const { childPid } = await aProcess();
  const kills = watching();
  kills.look();
  nowMs += 900;
  logKill(kills, childPid);
  process.kill(childPid, 'SIGKILL');
  running = [];
  kills.look();
  expect(explain(kills)).toMatchObject({ source: 'kernel', kind: 'host_oom', atBoottimeMs: 100_000 });
});

test('a worker that another thread of its program has started', async () => {
  const script = `
import subprocess, threading
def work():
    worker = subprocess.Popen(["sleep", "600"])
    print(worker.pid, flush=True)
    worker.wait()
threading.Thread(target=work).start()`;
  const { childPid } = await aProcess('python3', ['-c', script]);
  const kills = watching();
  kills.look();
  logKill(kills, childPid);
  expect(explain(kills)).toMatchObject({ kind: 'host_oom' });
});

test('another process of the machine is another matter', async () => {
  await aProcess();
  const kills = watching();
  kills.look();
  logKill(kills, process.pid);
  expect(explain(kills)).toBe(killed);
});

test('a pid that was ours long ago may be another process by now', async () => {
  const { childPid } = await aProcess();
  const kills = watching();
  kills.look();
  nowMs += 30_000;
  logKill(kills, childPid);
  expect(explain(kills)).toBe(killed);
});

test('a program that did without the killed worker for minutes has failed of something else', async () => {
  const { childPid } = await aProcess();
  const kills = watching();
  kills.look();
  logKill(kills, childPid);
  nowMs += 120_000;
  expect(explain(kills)).toBe(killed);
});

test('what the output names stands, unless it only tells of a lost process', async () => {
  const { main } = await aProcess();
  const kills = watching();
  logKill(kills, main.pid ?? 0);
  const oomOrLess = ['unknown', 'exit_code', 'python_exception', 'nccl_error', 'nccl_timeout', 'host_oom'];
  for (const kind of causeKinds) {
    const explained = explain(kills, { ...killed, source: 'log', kind });
    expect([kind, explained.source]).toEqual([kind, oomOrLess.includes(kind) ? 'kernel' : 'log']);
  }
});

test('words that a program wrote into the kernel log are not the kernel’s', async () => {
  const { main } = await aProcess();
  const kills = watching();
  const text = `Out of memory: Killed process ${main.pid} (python3) total-vm:1kB`;
  kills.kernelRecord({ fromKernel: false, sequence: 1, uptimeMs: nowMs, text });
  expect(explain(kills)).toBe(killed);
});

test('the log is read once more before a task is called unexplained', async () => {
  const { main } = await aProcess();
  const kills: KernelEnds = watching({ readKernelLog: () => logKill(kills, main.pid ?? 0) });
  expect(explain(kills)).toMatchObject({ source: 'kernel' });
});

test('nothing is kept of tasks that are long gone', async () => {
  const { childPid } = await aProcess();
  const kills = watching();
  kills.look();
  running = [];
  nowMs += 120_000;
  kills.look();
  nowMs += 1_000;
  logKill(kills, childPid);
  expect(explain(kills)).toBe(killed);
});

test('a segmentation fault is evidence where the exit is all there is', async () => {
  const { main } = await aProcess();
  const ends = watching();
  const text = `python3[${main.pid}]: segfault at 8 ip 00007f1a sp 00007ffd error 4 in libnccl.so.2[7f1a+9a4000]`;
  ends.kernelRecord({ fromKernel: true, sequence: 1, uptimeMs: nowMs, text });
  expect(explain(ends)).toMatchObject({ source: 'kernel', kind: null, message: text });
  const explained = { ...killed, source: 'log', kind: 'nccl_error' } as const;
  expect(explain(ends, explained)).toBe(explained);
});

describe('a process of a container', () => {
  const id = '5e'.repeat(32);
  const killedIn = (group: string, pid: number) =>
    `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${id},mems_allowed=0,oom_memcg=${group},` +
    `task_memcg=${group},task=python3,pid=${pid},uid=1000`;

  function kernelKills(ends: KernelEnds, group: string): void {
    ends.kernelRecord({ fromKernel: true, sequence: 1, uptimeMs: nowMs, text: killedIn(group, 4711) });
    logKill(ends, 4711);
  }

  beforeEach(() => {
    const groups = [
      `/sys/fs/cgroup/freezer/docker/${id}`,
      `/sys/fs/cgroup/freezer/libpod_parent/libpod-${id}`,
    ];
    writeFileSync(join(directory, 'container.json'), JSON.stringify({ version: 1, groups }));
  });

  test.each([`/docker/${id}`, `/docker/${id}/worker`])('is known by its control group %s', (group) => {
    const ends = watching();
    kernelKills(ends, group);
    expect(explain(ends)).toMatchObject({ source: 'kernel', kind: 'host_oom', blame: 'job' });
  });

  test.each([`/docker/${id.replace('5', '6')}`, '/', '/docker', `/docker/x${id}`])(
    'is not one of the control group %s',
    (group) => {
      const ends = watching();
      kernelKills(ends, group);
      expect(explain(ends)).toBe(killed);
    },
  );

  test('is not the next one that the kernel kills', () => {
    const ends = watching();
    const text = killedIn(`/docker/${id}`, 4711);
    ends.kernelRecord({ fromKernel: true, sequence: 1, uptimeMs: nowMs, text });
    logKill(ends, 4712);
    expect(explain(ends)).toBe(killed);
  });
});

describe('the kernel itself', () => {
  const memoryRoot = existsSync('/sys/fs/cgroup/memory') ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup';
  const limitFile = existsSync('/sys/fs/cgroup/memory') ? 'memory.limit_in_bytes' : 'memory.max';

  test('a process that takes more memory than its control group may is killed, and found by the log', async () => {
    const group = join(memoryRoot, `muster-test-${process.pid}`);
    mkdirSync(group);
    writeFileSync(join(group, limitFile), String(32 * 1024 * 1024));
    onTestFinished(() => rmdirSync(group));
    const kills: KernelEnds = watching({
      boottimeMs: realBoottimeMs,
      readKernelLog: () => log.readNow(),
    });
    const log = new KernelLog({
      path: '/dev/kmsg',
      onRecord: (record) => kills.kernelRecord(record),
      log: silentLogger,
    });
    log.open();
    onTestFinished(() => log.close());
    // `tail` keeps the last line, which never ends; the shell stands for a program that waits for its worker.
    const script = `echo $$ > ${join(group, 'cgroup.procs')}; tail /dev/zero; exit 1`;
    const main = spawn('sh', ['-c', script], { stdio: 'ignore' });
    const { pid = 0 } = main;
    writeProcessRecord(directory, {
      key,
      bootId: 'b',
      startedAtMs: 1,
      cgroup: null,
      limitGroups: [],
      mainExit: null,
      main: { pid, startTicks: readStat(pid)?.startTicks ?? 0 },
    });
    const looking = setInterval(() => kills.look(), 5);
    await once(main, 'exit');
    clearInterval(looking);
    // Another reader of this log, or a kernel that is busy, may take a moment; the record itself is written before the end.
    const explained = await vi.waitFor(() => {
      const failure = explain(kills, { ...killed, atBoottimeMs: realBoottimeMs() });
      expect(failure.source).toBe('kernel');
      return failure;
    });
    expect(explained).toMatchObject({ kind: 'host_oom', blame: 'job' });
    expect(explained.message).toMatch(/^Memory cgroup out of memory: Killed process \d+ \(tail\) total-vm:/);
    expect(readFileSync(join(group, 'cgroup.procs'), 'utf8')).toBe('');
  });
});
