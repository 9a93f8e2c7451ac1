import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { signalAll } from '../../../../scripts/processes.mjs';
import { launchCommand } from './launcher.ts';

function specOf(spec: Readonly<Record<string, unknown>>) {
  return decodeJobSpec(
    JSON.stringify({ name: 'llama', command: ['python3', 'train.py'], args: ['-x'], ...spec }),
  );
}

test('torchrun is the command itself, on every node', () => {
  expect(launchCommand(specOf({}), 1, 8)).toEqual(['python3', 'train.py', '-x']);
});

test('an MPI command runs on the first node only', () => {
  const spec = specOf({ launcher: 'mpi-hostfile' });
  expect(launchCommand(spec, 0, 8)).toEqual(['python3', 'train.py', '-x']);
  expect(launchCommand(spec, 1, 8).slice(0, 2)).toEqual(['/bin/sh', '-c']);
});

test('a command per GPU needs a command', () => {
  const spec = specOf({ launcher: 'env', image: 'trainer:1', command: undefined, args: undefined });
  expect(() => launchCommand(spec, 0, 2)).toThrow(/add a `command`/);
});

/** What images bring as /bin/sh. */
const shells = ['dash', 'bash', 'bash --posix', 'busybox sh'];

let folder: string;
let running: ChildProcess[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-launcher-'));
  running = [];
});

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  signalAll(processesOf().map(Number), 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
}

/** @param script what each rank runs, in sh */
function runRanks(
  shell: string,
  script: string,
  spec: Readonly<Record<string, unknown>> = {},
  processes = 3,
): Run {
  const job = specOf({ launcher: 'env', command: ['sh', '-c', script], args: [], ...spec });
  const [file = '', ...shellArgs] = shell.split(' ');
  // The shells within, too.
  const [, ...args] = launchCommand(job, 1, processes).map((part) => part.replaceAll('/bin/sh', shell));
  const child = spawn(file, [...shellArgs, ...args], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      TMPDIR: folder,
      WORLD_SIZE: String(2 * processes),
      TORCHELASTIC_ERROR_FILE: join(folder, 'error.json'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.push(child);
  let output = '';
  child.stdout?.on('data', (chunk) => (output += chunk));
  child.stderr?.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  return { child, output: () => output, ended };
}

async function until(condition: () => boolean, what: () => string): Promise<void> {
  await vi.waitFor(() => expect(condition(), what()).toBe(true));
}

/** What is left of a run, in whichever session: everything of it has this test's folder in its environment. */
function processesOf(): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`TMPDIR=${folder}`);
    } catch {
      return false;
    }
  });
}

const untilThere = (run: Run, lines: number) =>
  until(() => run.output().split('\n').length > lines, run.output);

describe.each(shells)('a process per GPU, by %s', (shell) => {
  const of = (script: string, spec = {}, processes = 3) => runRanks(shell, script, spec, processes);

  test('each finds its rank, and all of the output is there', async () => {
    const run = of('echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE"');
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.output().trim().split('\n').sort()).toEqual(['3 0 6 3', '4 1 6 3', '5 2 6 3']);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('arguments arrive as they are', async () => {
    const command = ['printf', '%s|', 'two words', "it's", '$HOME', '', '*'];
    const run = of('', { command }, 1);
    await run.ended;
    expect(run.output()).toBe("two words|it's|$HOME||*|");
  });

  test('the first bad end ends the others, and is the end of all', async () => {
    const run = of(
      'trap "echo told $LOCAL_RANK; exit 9" TERM; echo up; ' +
        'while [ ! -e go ]; do sleep 0.02; done; [ $LOCAL_RANK = 1 ] && exit 7; while :; do sleep 0.02; done',
    );
    await untilThere(run, 3);
    writeFileSync(join(folder, 'go'), '');
    expect(await run.ended).toEqual({ code: 7, signal: null });
    expect(
      run
        .output()
        .match(/told \d/g)
        ?.sort(),
    ).toEqual(['told 0', 'told 2']);
    expect(processesOf()).toEqual([]);
  });

  test('a rank that was killed is a bad end, and one that does not listen is killed after the grace', async () => {
    const run = of(
      'trap "" TERM; echo up; while [ ! -e go ]; do sleep 0.02; done; [ $LOCAL_RANK = 2 ] && kill -KILL $$; exec sleep 600',
      { stop_grace: '1s' },
    );
    await untilThere(run, 3);
    writeFileSync(join(folder, 'go'), '');
    expect(await run.ended).toEqual({ code: 137, signal: null });
    expect(processesOf()).toEqual([]);
  });

  test('a good end waits for the others', async () => {
    const run = of('[ $LOCAL_RANK = 0 ] && exit 0; while [ ! -e go ]; do sleep 0.02; done; echo late');
    await until(() => processesOf().length > 0, run.output);
    writeFileSync(join(folder, 'go'), '');
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.output()).toBe('late\nlate\n');
  });

  test.each([
    ['a container, where the first process alone is signalled', 1],
    ['a process, where the group is', -1],
  ])('SIGTERM reaches each rank once in %s, and its end is waited for', async (_where, sign) => {
    const run = of(
      'trap "echo told; asked=1" TERM; echo up; while [ -z "$asked" ]; do sleep 0.02; done; ' +
        'while [ ! -e go ]; do sleep 0.02; done; echo saved; exit 0',
    );
    await untilThere(run, 3);
    process.kill((run.child.pid ?? 0) * sign, 'SIGTERM');
    await untilThere(run, 6);
    writeFileSync(join(folder, 'go'), '');
    expect(await run.ended).toEqual({ code: 0, signal: null });
    const lines = run.output().split('\n');
    expect(lines.filter((line) => line === 'told')).toHaveLength(3);
    expect(lines.filter((line) => line === 'saved')).toHaveLength(3);
    expect(processesOf()).toEqual([]);
  });

  test('ranks that die of SIGTERM are a bad end', async () => {
    const run = of('echo up; exec sleep 600');
    await untilThere(run, 3);
    run.child.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: 143, signal: null });
    expect(processesOf()).toEqual([]);
  });

  test('SIGTERM in the first moment leaves nothing behind', async () => {
    for (const sign of [1, -1]) {
      const run = of('exec sleep 600');
      await until(() => processesOf().length > 1, run.output);
      process.kill((run.child.pid ?? 0) * sign, 'SIGTERM');
      expect((await run.ended).code).not.toBe(0);
      expect(processesOf()).toEqual([]);
    }
  });

  test('the error file is that of the rank that failed first', async () => {
    const run = of(
      'echo "$LOCAL_RANK" > "$TORCHELASTIC_ERROR_FILE"; trap "exit 1" TERM; echo up; ' +
        'while [ ! -e go ]; do sleep 0.02; done; [ $LOCAL_RANK = 1 ] && exit 3; while :; do sleep 0.02; done',
    );
    await untilThere(run, 3);
    writeFileSync(join(folder, 'go'), '');
    await run.ended;
    expect(readFileSync(join(folder, 'error.json'), 'utf8')).toBe('1\n');
  });

  test('a command that does not exist ends with 127', async () => {
    const run = of('', { command: ['no-such-program'] }, 2);
    expect((await run.ended).code).toBe(127);
    expect(run.output()).toContain('no-such-program');
  });

  test('a placeholder ends well when it is asked to, and leaves nothing behind', async () => {
    const [, ...args] = launchCommand(specOf({ launcher: 'mpi-hostfile' }), 1, 1);
    const [file = '', ...shellArgs] = shell.split(' ');
    const child = spawn(file, [...shellArgs, ...args], {
      env: { PATH: process.env['PATH'], TMPDIR: folder },
      stdio: 'ignore',
      detached: true,
    });
    running.push(child);
    await until(
      () => processesOf().length === 2,
      () => processesOf().join('\n'),
    );
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
    await until(
      () => processesOf().length === 0,
      () => processesOf().join('\n'),
    );
  });
});
