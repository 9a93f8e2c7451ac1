/**
 * What users notice of an upgrade: a coordinator and nodes on machines that systemd runs, upgraded by one command through ssh, while
 * each node runs a task and `muster submit` runs again and again. Also to a release that changes the form of the store. Floors of
 * the same run: nothing at all, and the bare restart of the coordinator.
 *
 *     node bench/upgrade.ts [nodes]        as root, on Linux with systemd, ssh and sshd
 *
 * Prints JSON. `gap`: the longest time between two submits that were answered, which the callers spend retrying.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  archivesDir,
  type BootedCluster,
  bootCluster,
  installedMuster,
} from '../test/support/hosts/bootedCluster.ts';
import { Releases } from '../test/support/releases.ts';
import { releaseAll, waitFor } from '../test/support/services.ts';
import { quietMachine, report, reportMachine, rounded, summary } from './support.ts';

const nodeCount = Number(process.argv[2] ?? 5);

/** Each line: the exit code, when it started and when it ended (nanoseconds), the id of the job. */
const submitLoop = [
  'rm -f /tmp/stop /tmp/submits',
  'while [ ! -e /tmp/stop ]; do begun=$(date +%s%N)',
  `  id=$(${installedMuster} submit -- true 2>>/tmp/complaints); code=$?`,
  '  echo "$code $begun $(date +%s%N) $id" >> /tmp/submits; done',
  'touch /tmp/stopped',
].join('\n');

interface Submits {
  readonly calls: number;
  readonly refused: number;
  readonly ms: Readonly<Record<string, number>>;
  readonly gapMs: number;
  readonly jobIds: readonly string[];
}

/** Calls `muster submit` on the head, one call after the other, until `work` has ended and one more was answered. */
async function submitting({ head }: BootedCluster, work: () => Promise<unknown>) {
  await head.must('rm', '-f', '/tmp/stopped');
  await head.must('systemd-run', '--quiet', '--collect', '--setenv=HOME=/root', 'sh', '-c', submitLoop);
  await waitFor('the first submit', () => head.must('cat', '/tmp/submits'));
  const startedMs = performance.now();
  await work();
  const tookMs = performance.now() - startedMs;
  await delay(1_000);
  await head.must('touch', '/tmp/stop');
  await waitFor('the last submit', () => head.must('ls', '/tmp/stopped'));
  return { tookMs: rounded(tookMs), submits: submitsOf(await head.must('cat', '/tmp/submits')) };
}

function submitsOf(text: string): Submits {
  const calls = text
    .trim()
    .split('\n')
    .map((line) => {
      const [code = '', begun = '', ended = '', id = ''] = line.split(' ');
      return { isAnswered: code === '0', begunMs: Number(begun) / 1e6, endedMs: Number(ended) / 1e6, id };
    });
  const answered = calls.filter(({ isAnswered }) => isAnswered);
  const gaps = answered.slice(1).map(({ endedMs }, index) => endedMs - (answered[index]?.endedMs ?? endedMs));
  return {
    calls: calls.length,
    refused: calls.length - answered.length,
    ms: summary(calls.map(({ begunMs, endedMs }) => endedMs - begunMs)),
    gapMs: rounded(Math.max(...gaps)),
    jobIds: answered.map(({ id }) => id),
  };
}

interface Task {
  readonly node: number;
  readonly pid: string;
}

/** The processes of the long jobs, with when they began: another process with the same number began later. */
async function tasks({ nodes }: BootedCluster): Promise<readonly Task[]> {
  const lists = await Promise.all(
    nodes.map((node) =>
      node.must(
        'sh',
        '-c',
        'for p in $(pgrep -fx "sleep 100000"); do cut -d " " -f 1,22 /proc/$p/stat; done',
      ),
    ),
  );
  return lists.flatMap((list, node) =>
    list
      .trim()
      .split('\n')
      .map((pid) => ({ node, pid })),
  );
}

async function nodesWith({ muster }: BootedCluster, version: string): Promise<number> {
  const { nodes } = JSON.parse(await muster('nodes', '-o', 'json')) as {
    readonly nodes: readonly { readonly state: string; readonly agentVersion: string }[];
  };
  return nodes.filter(({ state, agentVersion }) => state === 'online' && agentVersion === version).length;
}

async function lostOf({ muster }: BootedCluster, { jobIds }: Submits): Promise<number> {
  const { jobs } = JSON.parse(await muster('jobs', '--all', '--limit', '10000', '-o', 'json')) as {
    readonly jobs: readonly { readonly id: string }[];
  };
  const known = new Set(jobs.map(({ id }) => id));
  return jobIds.filter((id) => !known.has(id)).length;
}

async function attemptsOf({ muster }: BootedCluster): Promise<readonly number[]> {
  const { jobs } = JSON.parse(await muster('jobs', '--name', 'long', '-o', 'json')) as {
    readonly jobs: readonly { readonly attempts: readonly unknown[] }[];
  };
  return jobs.map(({ attempts }) => attempts.length);
}

async function measure(
  figure: string,
  cluster: BootedCluster,
  version: string,
  work: () => Promise<unknown>,
) {
  const before = await tasks(cluster);
  const { tookMs, submits } = await submitting(cluster, work);
  const after = new Set((await tasks(cluster)).map(({ node, pid }) => `${node} ${pid}`));
  await waitFor('all nodes', async () => (await nodesWith(cluster, version)) === nodeCount);
  const { calls, refused, ms, gapMs } = submits;
  report(figure, {
    tookMs,
    tasks: before.length,
    tasksDisturbed: before.filter(({ node, pid }) => !after.has(`${node} ${pid}`)).length,
    attemptsOfLongJobs: await attemptsOf(cluster),
    submits: calls,
    submitsRefused: refused,
    acceptedAndLost: await lostOf(cluster, submits),
    submitMs: ms,
    gapMs,
  });
}

reportMachine();
const releases = await Releases.make();
const first = await releases.archive({ version: '0.1.0' });
const next = await releases.archive({ version: '0.2.0' });
const nextForm = await releases.archive({ version: '0.3.0', hasNewSchema: true });
const cluster = await bootCluster(releases, first, nodeCount);
try {
  const { head, muster } = cluster;
  for (let job = 0; job < nodeCount; job += 1)
    await muster('submit', '--name', 'long', '--gpus', '1', '--', 'sleep', '100000');
  await waitFor('the tasks', async () => (await tasks(cluster)).length === nodeCount);
  report('busy', { percent: await quietMachine(20) });
  await measure('floor: submits, nothing else', cluster, '0.1.0', () => delay(10_000));
  await measure('floor: systemctl restart muster-coordinator', cluster, '0.1.0', async () => {
    await head.must('systemctl', 'restart', 'muster-coordinator');
    await delay(3_000);
  });
  const upgrade = (archive: string) => async () =>
    void (await muster('upgrade', `${archivesDir}/${archive}`, '--nodes', 'all', '--wave', '2'));
  await measure('upgrade of coordinator and nodes', cluster, '0.2.0', upgrade(next));
  await measure('upgrade that changes the form of the store', cluster, '0.3.0', upgrade(nextForm));
} finally {
  await cluster.remove();
  await releaseAll();
}
