/** The examples as their README starts them: real distributed training on two nodes, through the `muster` command. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { repositoryDir } from '../support/command.ts';
import { pythonWithTorch, tempDir } from '../support/services.ts';

/** Importing torch takes seconds, and several ranks share the processors of a small machine. */
const torchTimeoutMs = 300_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, gpus: 2 });
});

/** @returns the id of the job of an example, with another command line */
async function submitExample(
  name: string,
  flags: readonly string[],
  command: readonly string[],
): Promise<string> {
  const args = ['submit', '-f', `examples/${name}.yaml`, ...flags, '--', ...command];
  const { exitCode, stdout, stderr } = await cluster.muster(args, { cwd: repositoryDir });
  expect(exitCode, stderr).toBe(0);
  return stdout.trim();
}

function losses(output: string): readonly number[] {
  return Array.from(output.matchAll(/^iter \d+: loss (\S+), time/gm), ([, loss]) => Number(loss));
}

function digest(output: string): string | undefined {
  return /weights (sha256:[0-9a-f]{64})$/m.exec(output)?.[1];
}

/** What lies in a checkpoint directory, but for the index that Muster keeps there. */
function checkpointsIn(directory: string): readonly string[] {
  const names = readdirSync(directory).sort();
  expect(names[0]).toBe('checkpoints_index.json');
  return names.slice(1).map((name) => join(directory, name));
}

/** Where a job without a checkpoint directory of its own saves: a place on the node of its rank 0. */
function checkpointsOf(job: JobView): readonly string[] {
  const node = job.attempts.at(-1)?.tasks[0]?.node ?? '';
  return checkpointsIn(join(cluster.agentsDir, node, 'checkpoints', job.id));
}

/** Names and verdicts, as the job has them. */
function verdictsOf({ checkpoints }: JobView): readonly string[] {
  return checkpoints.map(({ name, verdict }) => `${name} ${verdict}`);
}

describe('quickstart.yaml', () => {
  const train = (...flags: readonly string[]) => [process.execPath, 'examples/train.mjs', ...flags];

  test('trains on 2 nodes x 2 ranks, followed live, and leaves its checkpoints', async () => {
    const args = ['submit', '--follow', '-f', 'examples/quickstart.yaml', '--'];
    const followed = await cluster.muster([...args, ...train('--steps=100')], { cwd: repositoryDir });
    expect(followed.exitCode, followed.stderr).toBe(0);
    const jobId = /job_\w{12}/.exec(followed.stderr)?.[0] ?? '';
    const job = await cluster.api.getJob(jobId);
    expect(job).toMatchObject({ name: 'quickstart', state: 'succeeded' });
    const output = await cluster.output(jobId);
    for (const line of output.trim().split('\n')) expect(followed.stdout).toContain(line);
    expect(output).toContain(
      `world size 4, peers met at 127.0.0.1:${job.attempts[0]?.masterPort}, starting fresh at step 0\n`,
    );
    const seen = losses(output);
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.at(-1)).toBeLessThan((seen[0] ?? 0) / 2);
    expect(checkpointsOf(job).map((path) => path.slice(-16))).toEqual([
      'step-000050.json',
      'step-000100.json',
    ]);
    expect(verdictsOf(job)).toEqual(['step-000050.json verified', 'step-000100.json verified']);
  });

  test('stopped in the middle it saves, and goes on from there to the very bits of an undisturbed run', async () => {
    const undisturbed = await submitExample('quickstart', [], train('--steps=150'));
    const flags = ['--steps=150', '--step-ms=20', '--log-every=1', '--save-every=0'];
    const stopped = await submitExample('quickstart', [], train(...flags));
    await cluster.untilOutput(stopped, 'iter 5: ');
    await cluster.api.stopJobs([stopped]);
    const job = await cluster.untilEnded(stopped);
    expect(job).toMatchObject({ state: 'cancelled', cause: { kind: 'cancelled' } });
    // Once its checkpoint is verified whatever is left is killed, and a slow machine may still be ending it.
    for (const { exit } of job.attempts[0]?.tasks ?? [])
      expect([143, 'SIGKILL']).toContain(exit?.exitCode ?? exit?.signal);
    // Which may also be before it has said that it has saved.
    const [checkpoint = ''] = checkpointsOf(job);

    const resumed = await submitExample(
      'quickstart',
      ['--env', `MUSTER_RESUME_FROM=${checkpoint}`],
      train(...flags),
    );
    expect((await cluster.untilEnded(resumed)).state).toBe('succeeded');
    const output = await cluster.output(resumed);
    expect(output).toContain(
      `resuming from ${checkpoint} at step ${Number(/step-(\d+)/.exec(checkpoint)?.[1])}\n`,
    );
    expect(digest(output)).toMatch(/^sha256:/);
    expect(digest(output)).toBe(digest(await cluster.output(undisturbed)));
  });

  test('a rank that fails ends the attempt, and the retry policy runs the next one', async () => {
    const flags = ['--steps=60', '--step-ms=5', '--fail-at-step=20', '--fail-rank=3'];
    const { exitCode, stdout, stderr } = await cluster.muster(
      ['submit', '-f', '-', '--workdir', repositoryDir],
      {
        stdin: JSON.stringify({
          command: train(...flags),
          resources: { nodes: 2, gpus: 2 },
          retry: { max_attempts: 3, backoff: { initial: '100ms', max: '1s' }, on: ['exit_code'] },
        }),
      },
    );
    expect(exitCode, stderr).toBe(0);
    const job = await cluster.untilEnded(stdout.trim());
    expect(job.state).toBe('succeeded');
    expect(job.attempts.map(({ cause }) => cause?.kind)).toEqual(['exit_code', undefined]);
    expect(await cluster.output(job.id, { attempt: 1, rank: 1 })).toContain(
      '[rank3]: failing at step 20, as --fail-at-step asks',
    );
  });
});

describe('torchrun.yaml', { timeout: 2 * torchTimeoutMs }, () => {
  // The flags that tell torchrun about nodes, ranks and their meeting point are missing on purpose.
  const torchrun = async (...flags: readonly string[]) => [
    await pythonWithTorch(),
    '-m',
    'torch.distributed.run',
    'examples/train_torch.py',
    ...flags,
  ];

  test('trains under torchrun without any flags of its own', async () => {
    const jobId = await submitExample(
      'torchrun',
      ['--gpus', '1'],
      await torchrun('--steps=40', '--save-every=20'),
    );
    const job = await cluster.untilEnded(jobId, { timeoutMs: torchTimeoutMs });
    const output = await cluster.output(jobId);
    expect(job.state, output).toBe('succeeded');
    expect(output).toContain(
      `world size 2, peers met at 127.0.0.1:${job.attempts[0]?.masterPort}, starting fresh at step 0\n`,
    );
    expect(await cluster.output(jobId, { rank: 1 })).toContain('rank 1/2 on node 1 ready\n');
    const seen = losses(output);
    expect(seen.at(-1)).toBeLessThan(seen[0] ?? 0);
    expect(checkpointsOf(job).map((path) => path.slice(-14))).toEqual(['step-000020.pt', 'step-000040.pt']);
    expect(verdictsOf(job)).toEqual(['step-000020.pt verified', 'step-000040.pt verified']);
  });

  test('stopped in the middle it saves', async () => {
    const checkpoint = ['--checkpoint-dir', tempDir('checkpoints').path];
    const flags = ['--steps=1000000', '--step-ms=5', '--log-every=1', '--save-every=0'];
    const jobId = await submitExample('torchrun', ['--gpus', '1', ...checkpoint], await torchrun(...flags));
    await cluster.untilOutput(jobId, 'iter 3: ', 0, torchTimeoutMs);
    await cluster.api.stopJobs([jobId]);
    const job = await cluster.untilEnded(jobId, { timeoutMs: torchTimeoutMs });
    const output = await cluster.output(jobId);
    expect(job, output).toMatchObject({ state: 'cancelled', cause: { kind: 'cancelled' } });
    const [saved = ''] = checkpointsIn(checkpoint[1] ?? '');
    expect(saved.slice(-14)).toMatch(/^step-\d{6}\.pt$/);
    // Once that is verified whatever is left is killed, with what torchrun has not passed on yet.
    expect(verdictsOf(job)).toEqual([`${saved.slice(-14)} verified`]);
    expect(cluster.processesOf(jobId)).toEqual([]);
  });
});
