/** Bad input and bad days: a clear error that names the thing and the remedy, a non-zero exit, nothing lost, no stack trace. */
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import type { CommandResult } from '../support/command.ts';
import { freePort, tempDir, waitFor } from '../support/services.ts';
import { expectSameText } from '../support/text.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 1 });
});

const usage = 2;
const refused = 3;
const notFound = 4;
const unreachable = 5;
const denied = 6;

/** What a user sees when a command refuses: sentences with these words, and nothing of our insides. */
function expectRefusal(
  { exitCode, stdout, stderr }: CommandResult,
  code: number,
  ...words: readonly (string | RegExp)[]
): void {
  expect(exitCode, stderr).toBe(code);
  for (const word of words) expect(stderr).toMatch(word);
  expect(stdout).toBe('');
  expect(stderr).not.toMatch(/^\s+at .+:\d+/m);
  expect(stderr).not.toMatch(/\bundefined\b|\[object |is a bug/);
  expect(stderr.length).toBeLessThan(2_000);
}

describe('a job that nobody knows', () => {
  test.each(['job', 'logs', 'stop', 'requeue', 'explain'])('muster %s says so', async (command) => {
    const result = await cluster.muster([command, 'job_000000000000']);
    expectRefusal(result, notFound, 'there is no job job_000000000000', 'muster jobs');
  });

  test('by name or as latest says so too', async () => {
    expectRefusal(
      await cluster.muster(['logs', 'never-submitted']),
      notFound,
      'never-submitted',
      'muster jobs',
    );
  });

  test('and a node that nobody knows', async () => {
    expectRefusal(
      await cluster.muster(['node', 'nowhere']),
      notFound,
      'there is no node nowhere',
      'muster nodes',
    );
  });
});

describe('a coordinator', () => {
  test('that does not run is named, with the command that starts one', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const result = await cluster.muster(['jobs', '--addr', address], { env: { MUSTER_TOKEN: 'x' } });
    expectRefusal(result, unreachable, `no coordinator answers at ${address}`, 'muster up');
  });

  test('that was never started is missed by its data directory', async () => {
    const { path } = tempDir('empty');
    expectRefusal(await cluster.muster(['jobs', '--data', path]), unreachable, path, 'muster up');
  });

  test('refuses a token that it does not know', async () => {
    const result = await cluster.muster(['jobs', '--addr', cluster.address], {
      env: { MUSTER_TOKEN: 'made-up' },
    });
    expectRefusal(result, denied, 'token');
  });

  test('does not take a port that is in use', async () => {
    const result = await cluster.muster([
      'coordinator',
      '--data',
      join(cluster.workDir, 'other'),
      '--listen',
      cluster.address,
    ]);
    expectRefusal(result, refused, `${cluster.address} is in use`, '--listen');
  });

  test('is not the second one of its data directory', async () => {
    const result = await cluster.muster([
      'coordinator',
      '--data',
      cluster.dataDir,
      '--listen',
      '127.0.0.1:0',
    ]);
    expectRefusal(result, refused, 'another coordinator is using', cluster.dataDir);
    expect(await cluster.run({ command: 'true' })).toMatchObject({ state: 'succeeded' });
  });

  test.each(['coordinator', 'agent'])(
    '(or %s) without permission names the directory and the remedy',
    async (command) => {
      const parent = tempDir('locked').path;
      const data = join(parent, 'data');
      mkdirSync(data);
      chmodSync(data, 0o500);
      chmodSync(parent, 0o755);
      const flags =
        command === 'agent' ? ['--name', 'n', '--coordinator', cluster.address] : ['--listen', '127.0.0.1:0'];
      const obeysModes = process.getuid?.() === 0;
      const result = await cluster.muster([command, '--data', join(data, 'inner'), ...flags], {
        cwd: '/',
        obeysModes,
      });
      expectRefusal(result, refused, data, /permission|EACCES/i);
      chmodSync(data, 0o700);
    },
  );
});

describe('a data directory', () => {
  let copy = '';
  beforeAll(async () => {
    await cluster.run({ command: 'true' });
    await cluster.coordinator.stop();
    copy = join(cluster.workDir, 'copy');
    cpSync(cluster.dataDir, copy, { recursive: true });
    await cluster.coordinator.start();
    await cluster.untilOnline();
  });

  const startOn = (data: string) =>
    cluster.muster(['coordinator', '--data', data, '--listen', '127.0.0.1:0']);

  function damaged(name: string, damage: (directory: string) => void): string {
    const directory = join(cluster.workDir, name);
    cpSync(copy, directory, { recursive: true });
    damage(directory);
    return directory;
  }

  test('of a newer version is left alone', async () => {
    const directory = damaged('newer', (path) => {
      const database = new DatabaseSync(join(path, 'muster.db'));
      database.exec('pragma user_version = 999');
      database.close();
    });
    expectRefusal(await startOn(directory), refused, join(directory, 'muster.db'), 'newer', /[Uu]pgrade/);
  });

  test('that lost its database is not taken for a new one', async () => {
    const directory = damaged('lost', (path) => rmSync(join(path, 'muster.db')));
    expectRefusal(await startOn(directory), refused, join(directory, 'muster.db'), 'is gone', 'backup');
  });

  test('with the database of another cluster is refused', async () => {
    const directory = damaged('swapped', (path) =>
      writeFileSync(join(path, 'cluster.json'), '{"clusterId":"000000000000"}\n'),
    );
    expectRefusal(await startOn(directory), refused, '000000000000');
  });

  test.each<[what: string, content: string | Buffer]>([
    ['text', 'this is not a database\n'.repeat(1_000)],
    ['zeros', Buffer.alloc(100_000)],
  ])('with a database full of %s is refused', async (what, content) => {
    const directory = damaged(`full-of-${what}`, (path) => writeFileSync(join(path, 'muster.db'), content));
    expectRefusal(await startOn(directory), refused, join(directory, 'muster.db'), 'damaged', 'backup');
  });

  test('that is a file is refused', async () => {
    const directory = join(cluster.workDir, 'file');
    writeFileSync(directory, '');
    expectRefusal(await startOn(directory), refused, directory);
  });

  test('that lost its admin token gets another one', async () => {
    const before = cluster.adminToken;
    renameSync(join(cluster.dataDir, 'admin.token'), join(cluster.workDir, 'old.token'));
    await cluster.coordinator.stop();
    await cluster.coordinator.start();
    expect(cluster.adminToken).not.toBe(before);
    await cluster.untilOnline();
    const result = await cluster.muster(['jobs', '--addr', cluster.address], {
      env: { MUSTER_TOKEN: before },
    });
    expectRefusal(result, denied, 'token');
  });
});

describe('a spec', () => {
  const submit = (file: string, content: string) => {
    const path = join(cluster.workDir, file);
    writeFileSync(path, content);
    return cluster.muster(['submit', '-f', path]);
  };

  test('that is no YAML is refused with the line', async () => {
    const result = await submit('broken.yaml', 'name: x\ncommand: [echo, "hi]\nresources: {gpus: 1}\n');
    expectRefusal(result, usage, 'broken.yaml', /\b[234]\b/);
  });

  test('with several mistakes names all of them, with line and suggestion', async () => {
    const result = await submit(
      'wrong.yaml',
      'comand: echo\nresources:\n  gpu: 2\npriority: high\nmax_runtime: 24 hours\n',
    );
    expectRefusal(
      result,
      usage,
      'comand',
      'command',
      'resources.gpu',
      'gpus',
      'priority',
      'max_runtime',
      '24h',
    );
    for (const line of [1, 3, 4, 5]) expect(result.stderr).toContain(`wrong.yaml:${line}`);
    expect((await cluster.api.listJobs({ name: 'echo' })).jobs).toEqual([]);
  });

  test('of 50 MB is refused, from a file, from a pipe and by the coordinator, which goes on', async () => {
    const huge = JSON.stringify({ command: 'true', env: { X: 'x'.repeat(50 * 1024 * 1024) } });
    expectRefusal(await submit('huge.json', huge), usage, 'huge.json', '256');
    expectRefusal(
      await cluster.muster(['submit', '-f', '-'], { stdin: huge }),
      usage,
      'standard input',
      '256',
    );
    const sent = cluster.api.submit({ specJson: huge, requestId: 'huge' });
    await expect(sent).rejects.toMatchObject({
      code: expect.stringMatching(/resource_exhausted|invalid|unavailable/),
    });
    const large = JSON.stringify({ command: 'true', env: { X: 'x'.repeat(300 * 1024) } });
    const alsoSent = cluster.api.submit({ specJson: large, requestId: 'large' });
    await expect(alsoSent).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('at most'),
    });
    expect(await cluster.run({ command: 'true' })).toMatchObject({ state: 'succeeded' });
  });

  test('in a file that does not exist is refused', async () => {
    expectRefusal(await cluster.muster(['submit', '-f', 'nowhere.yaml']), usage, 'nowhere.yaml');
  });

  test('with a command but without the two dashes is refused with the right spelling', async () => {
    expectRefusal(await cluster.muster(['submit', 'echo', 'hi']), usage, 'submit -- echo hi');
  });
});

const megabyte = 1024 * 1024;

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Writes a file that takes all there is left. */
function fillDisk(path: string): void {
  const file = openSync(path, 'w');
  const page = Buffer.alloc(4096);
  expect(() => {
    for (;;) writeSync(file, page);
  }).toThrow('ENOSPC');
  closeSync(file);
}

describe("a full disk of the coordinator's", () => {
  const reserveMb = 32;
  let small: Cluster;
  beforeAll(async () => {
    small = await startCluster({
      coordinatorDiskMb: 96,
      coordinatorFlags: ['--reserve-mb', String(reserveMb)],
      expectedErrors: /nothing is started|output could not be stored/,
    });
  });

  test('refuses new jobs with the bytes needed, records the ends of old ones, and mends without a restart', async () => {
    const gate = tempDir('gate').path;
    const until = (name: string) => `while [ ! -e ${join(gate, name)} ]; do sleep 0.05; done`;
    const script = (name: string) => `echo ready; ${until(name)}; seq 1 300000`;
    const ids = [
      await small.submit({ command: script('low') }),
      await small.submit({ command: script('none') }),
    ];
    for (const id of ids) await small.untilOutput(id, 'ready\n');
    const [whenLow = '', whenNone = ''] = ids;
    const filler = join(small.dataDir, 'filler');

    // 1. Below the reserve: no new jobs, and their ends are recorded.
    writeFileSync(filler, Buffer.alloc(freeBytes(small.dataDir) - 16 * megabyte));
    const refusal = await waitFor(
      'a submit is refused',
      () => small.submit({ command: 'true' }).catch((error: unknown) => error),
      {
        until: (seen) => seen instanceof Error,
      },
    );
    expect(refusal).toMatchObject({
      code: 'resource_exhausted',
      message: expect.stringMatching(
        /\d+ bytes free and 33554432 are kept in reserve: free at least \d+ bytes/,
      ),
    });
    writeFileSync(join(gate, 'low'), '');
    expect(await small.untilEnded(whenLow)).toMatchObject({ state: 'succeeded' });

    // 2. No space at all: still.
    fillDisk(join(small.dataDir, 'more'));
    expect(freeBytes(small.dataDir)).toBe(0);
    writeFileSync(join(gate, 'none'), '');
    expect(await small.untilEnded(whenNone)).toMatchObject({ state: 'succeeded' });

    // 3. There is space again: everything continues, and the output that had to wait arrives.
    const { pid } = small.coordinator;
    rmSync(join(small.dataDir, 'more'));
    rmSync(filler);
    const later = await waitFor('a submit is accepted again', () =>
      small.submit({ command: 'echo at last' }),
    );
    expect(await small.untilEnded(later)).toMatchObject({ state: 'succeeded' });
    const expected = `ready\n${Array.from({ length: 300_000 }, (_, index) => `${index + 1}\n`).join('')}`;
    for (const id of ids) expectSameText(await small.output(id), expected);
    expect(small.coordinator.pid).toBe(pid);
    const held = async () =>
      (await small.api.getUpkeep()).parts.find(({ part }) => part === 'reserve')?.usedBytes;
    await waitFor('the store holds its own space again', held, { until: (bytes) => bytes === 4 * megabyte });
  });
});

describe("a full disk of an agent's", () => {
  let small: Cluster;
  beforeAll(async () => {
    // A disk this small counts as full nearly at once; that the node is then drained is tested elsewhere.
    const table = join(tempDir('table').path, 'conditions.yaml');
    writeFileSync(table, 'conditions: {disk_full: {action: note}}');
    small = await startCluster({
      agentDiskMb: 16,
      agentFlags: () => ['--condition-table', table],
      // The agent has no room to record the state: it reports that, and the coordinator has the state.
      expectedErrors: /the state of a task could not be written down/,
    });
  });

  test('ends the job that filled it or holds it back, and no other', async () => {
    const steady = await small.submit({
      command: 'echo ready; while [ ! -e done ]; do sleep 0.1; done',
      workdir: '/',
    });
    await small.untilOutput(steady, 'ready\n');
    const wanted = 40_000_000;
    const greedy = await small.run({ command: `exec head -c ${wanted} /dev/zero` });
    const bytes = greedy.attempts[0]?.tasks[0]?.exit?.logBytes ?? 0;
    const output = await small.output(greedy.id);
    // On a machine that is fast enough the task is throttled, and a line in its output reports that.
    const throttled = /\n\[muster\] this task writes more than .*\n/.exec(output)?.[0].length ?? 0;
    // Output that the coordinator has makes room again: whether it does so in time is a race.
    if (greedy.state === 'succeeded') expect(bytes).toBe(wanted + throttled);
    else {
      expect(greedy).toMatchObject({
        state: 'failed',
        cause: { kind: 'exit_code', message: 'rank 0 on node-1 exited with code 1' },
      });
      expect(bytes).toBeGreaterThan(4 * megabyte);
    }
    // So is whether the guard drops the middle of it before the disk is full.
    if (output.length !== bytes) expect(output).toMatch(/\n\[muster\] \d+ bytes of output were dropped/);
    expect(await small.api.getJob(steady)).toMatchObject({ state: 'running', attempts: [{ number: 1 }] });
    expect(await small.run({ command: 'echo room again' })).toMatchObject({ state: 'succeeded' });
    await small.api.stopJobs([steady]);
    expect(await small.untilEnded(steady)).toMatchObject({ state: 'cancelled' });
  });

  test('holds back new jobs until there is space, and records the ends of old ones', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const old = await small.submit({
      command: `echo ready; while [ ! -e ${gate} ]; do sleep 0.1; done; exit 3`,
    });
    await small.untilOutput(old, 'ready\n');
    const directory = small.agentDataDir(small.agent(0));
    const fillers = ['filler', 'more'].map((name) => join(directory, name));
    fillDisk(fillers[0] ?? '');
    writeFileSync(gate, '');
    expect(await small.untilEnded(old)).toMatchObject({ state: 'failed', cause: { kind: 'exit_code' } });
    const tasks = () => readdirSync(join(directory, 'tasks'));
    await waitFor('the old job is gone', tasks, { until: ({ length }) => length === 0 });
    fillDisk(fillers[1] ?? '');
    const fresh = await small.submit({ command: 'echo at last' });
    const held = await waitFor('the agent cannot prepare it', () => small.api.getJob(fresh), {
      until: ({ attempts }) => attempts.at(-1)?.cause?.kind === 'disk_full',
    });
    expect(held).toMatchObject({ attempts: [{ cause: { node: 'node-1' } }] });
    expect(['queued', 'starting']).toContain(held.state);
    for (const filler of fillers) rmSync(filler);
    expect(await small.untilEnded(fresh)).toMatchObject({ state: 'succeeded' });
    expect(await small.output(fresh)).toBe('at last\n');
  });
});
