/** The store's life in an operator's hands: checked, copied while it is at work, restored, damaged, accepted. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openBackup } from '@muster/coordinator/store/sqlite/backup';
import { readCommittedWal } from '@muster/coordinator/store/sqlite/walFile';
import { beforeAll, expect, onTestFailed, test } from 'vitest';
import { seededChance } from '../support/chance.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { musterProgram } from '../support/command.ts';
import { tempDir } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 1 });
});

const environment = () => ({ ...process.env, HOME: cluster.workDir, MUSTER_DATA: cluster.dataDir });

const offline = (...words: readonly string[]) =>
  cluster.muster([...words, '--data', cluster.dataDir, '-o', 'json']);

test('a backup that is taken while jobs run is restored, and what runs on nodes keeps running', async () => {
  const gate = tempDir('gate').path;
  const counted = (name: string) =>
    `echo run >> ${join(gate, `${name}.runs`)}; echo ready; while [ ! -e ${join(gate, name)} ]; do sleep 0.1; done`;
  const runsOf = (name: string) => readFileSync(join(gate, `${name}.runs`), 'utf8');
  const before = await cluster.submit({ command: 'true' });
  await cluster.untilEnded(before);
  const long = await cluster.submit({ command: counted('long') });
  const short = await cluster.submit({ command: counted('short') });
  for (const id of [long, short]) await cluster.untilOutput(id, 'ready\n');
  const file = join(cluster.workDir, 'backup');
  const taken = await cluster.muster(['backup', file]);
  expect(taken).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/admin\.token .*read back and is intact/),
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(join(gate, 'short'), '');
  expect(await cluster.untilEnded(short)).toMatchObject({ state: 'succeeded' });
  const lost = await cluster.submit({ command: 'true' });
  await cluster.untilEnded(lost);
  expect(await offline('store', 'check')).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('another coordinator is using'),
  });
  expect(await offline('restore', file, '--force')).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('another coordinator is using'),
  });

  await cluster.coordinator.stop();
  const checked = await offline('store', 'check');
  expect(JSON.parse(checked.stdout)).toMatchObject({ ok: true, findings: [], contents: { jobs: 4 } });
  expect(await offline('restore', file)).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('has a store already'),
  });
  const restored = await offline('restore', file, '--force');
  expect(JSON.parse(restored.stdout)).toMatchObject({ lostJobs: 1, restoredFiles: [] });
  await cluster.coordinator.start();
  await cluster.untilOnline();

  const { jobs } = await cluster.api.listJobs();
  expect(jobs.map(({ id }) => id).sort()).toEqual([before, long, short].sort());
  const events: string[] = [];
  for await (const { kind } of cluster.api.watchEvents({ sinceSeq: 0, follow: false, subject: 'cluster' }))
    events.push(kind);
  expect(events).toContain('store.restored');
  // One runs on, as the attempt that it was. The other one has ended after the backup: its end is no longer known.
  writeFileSync(join(gate, 'long'), '');
  expect(await cluster.untilEnded(long)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
  expect(runsOf('long')).toBe('run\n');
  expect(await cluster.untilEnded(short)).toMatchObject({ state: 'failed', attempts: [{ number: 1 }] });
  expect(runsOf('short')).toBe('run\n');
});

test('a backup or its coordinator that is killed leaves the file that was there, or a complete one', async () => {
  const chance = seededChance();
  onTestFailed(() => void process.stderr.write(`MUSTER_TEST_SEED=${chance.seed}\n`));
  const file = join(cluster.workDir, 'killed');
  expect(await cluster.muster(['backup', file])).toMatchObject({ exitCode: 0 });
  let taken = 0;
  for (let trial = 0; trial < trialsOf(40, 6); trial += 1) {
    const child = spawn(musterProgram, ['backup', file], { env: environment(), stdio: 'ignore' });
    const ended = once(child, 'exit');
    await Promise.race([ended, delay(chance.integer(0, 1_000))]);
    if (trial % 2 === 0) child.kill('SIGKILL');
    else {
      await cluster.coordinator.kill();
      await cluster.coordinator.start();
    }
    await ended;
    taken += child.exitCode === 0 ? 1 : 0;
    const backup = openBackup(file);
    expect(backup.about.files.map(({ name }) => name)).toContain('admin.token');
    backup.close();
  }
  // The rest was killed at work; how many these are is chance.
  expect(taken).toBeLessThan(trialsOf(40, 6));
  await cluster.untilOnline();
  expect(await cluster.muster(['backup', file])).toMatchObject({ exitCode: 0 });
  expect(existsSync(`${file}.part`)).toBe(false);
});

test('a disk that is too small for a backup is named, and keeps no part of it', async () => {
  const directory = tempDir('small').path;
  const script = 'mount -t tmpfs -o size=64k none "$0" && { "$@" 2>&1; echo "exit code $?"; ls -A "$0"; }';
  const argv = ['--mount', 'sh', '-c', script, directory, musterProgram, 'backup', join(directory, 'file')];
  const { stdout } = await promisify(execFile)('unshare', argv, { env: environment() });
  expect(stdout).toMatch(
    /^muster: no space left on the disk of .*file; nothing was changed\n.*\nexit code [1-9]\n$/,
  );
});

/** @returns bytes of a write-ahead log up to half of its committed frames. The space behind them holds nothing yet. */
function halfOfCommits(log: string): number {
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + readFileSync(log).readUInt32BE(8);
  const file = openSync(log, 'r');
  try {
    const frames = readCommittedWal(file)?.position.frames ?? 0;
    return headerBytes + Math.floor(frames / 2) * frameBytes;
  } finally {
    closeSync(file);
  }
}

test('a store that lost commits with a kill is refused until it is accepted', async () => {
  for (let job = 0; job < 5; job += 1) await cluster.submit({ command: 'true' });
  await cluster.coordinator.kill();
  const log = join(cluster.dataDir, 'muster.db-wal');
  truncateSync(log, halfOfCommits(log));

  const listen = ['coordinator', '--data', cluster.dataDir, '--listen', '127.0.0.1:0'];
  const refused = await cluster.muster(listen);
  expect(refused.exitCode).not.toBe(0);
  expect(refused.stderr).toMatch(/lost acknowledged commits.*muster store check.*muster store accept/s);
  const checked = await offline('store', 'check');
  expect(checked.exitCode).not.toBe(0);
  expect(JSON.parse(checked.stdout)).toMatchObject({ ok: false, findings: [{ kind: 'behind' }] });

  const accepted = await offline('store', 'accept');
  expect(JSON.parse(accepted.stdout).lostEvents).toBeGreaterThan(0);
  await cluster.coordinator.start();
  await cluster.untilOnline();
  expect(await cluster.muster(['nodes'])).toMatchObject({ exitCode: 0 });
});
