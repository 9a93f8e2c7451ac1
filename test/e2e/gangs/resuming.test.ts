/** A rank of a gang dies in the middle of real training: nothing is lost but what was done since the last checkpoint. */
import { join } from 'node:path';
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { beforeAll, expect, test } from 'vitest';
import { repositoryDir } from '../../support/command.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';
import { signalProcess } from '../../support/hosts/programs.ts';

let cluster: GangCluster;
beforeAll(async () => {
  cluster = await startNamespaceCluster({ hosts: 3 });
});

const training = (flags = '') => ({
  command: `exec torchrun ${join(repositoryDir, 'examples/train_torch.py')} --steps=200 ${flags}`,
  // torchrun 1.13 on Python 3.11 fails with its own defaults of these two; local rank 9 is not there.
  env: { PET_REDIRECTS: '9:1', PET_TEE: '9:1' },
  resources: { nodes: 2, gpus: 1 },
});
const saveEvery = 10;
/** The first attempt has half a minute left when it is killed; the second one need not take as long. */
const stepMs = '$((MUSTER_ATTEMPT == 1 ? 200 : 0))';

const nodesOf = (job: JobView, attempt: number) =>
  (job.attempts[attempt - 1]?.tasks ?? []).map(({ node }) => node);

/** Of the last checkpoint that an attempt has said to be there. */
function lastSaved(output: string): { readonly name: string; readonly step: number } {
  const [, name = '', step] =
    [...output.matchAll(/^saving checkpoint to \S+\/(step-(\d+)\.pt)$/gm)].at(-1) ?? [];
  return { name, step: Number(step) };
}

const digest = (output: string) => /weights (sha256:[0-9a-f]{64})$/m.exec(output)?.[1];

test('a rank is killed: the gang trains on from its last checkpoint, with rank 0 where that is', async ({
  annotate,
}) => {
  // Keeps the host that comes first, which is free again by the time the gang could move its rank 0 there.
  const holder = await cluster.submit({ command: ['/usr/bin/sleep', '600'] });
  await cluster.untilJob(holder, 'is running', ({ state }) => state === 'running');
  const jobId = await cluster.submit({
    ...training(`--step-ms=${stepMs} --log-every=1 --save-every=${saveEvery}`),
    retry: { on: ['exit_code'] },
  });
  await cluster.untilJob(jobId, 'is running', ({ state }) => state === 'running');
  await cluster.api.stopJobs([holder]);
  await cluster.untilEnded(holder);
  await cluster.untilOutput(jobId, `iter ${2 * saveEvery + 5}: `);
  const before = await cluster.untilJob(
    jobId,
    'has saved twice',
    ({ checkpoints }) => checkpoints.length >= 2,
  );
  const [, victim = ''] = nodesOf(before, 1);
  const pid = await cluster.host(victim).rankProcess(jobId, 1);
  const killedAtMs = Date.now();
  signalProcess(pid, 'SIGKILL');
  const again = await cluster.untilJob(
    jobId,
    'begins anew, or has ended',
    ({ attempts, state }) => attempts.length >= 2 || isTerminal(state),
  );
  expect(again.attempts, `${again.state}: ${JSON.stringify(again.attempts[0]?.cause)}`).toHaveLength(2);
  await cluster.untilOutput(jobId, 'iter ', { attempt: 2 });
  const trainsAgainAtMs = Date.now();
  const job = await cluster.untilEnded(jobId);

  const output = await cluster.output(jobId, { attempt: 2 });
  const saved = lastSaved(await cluster.output(jobId, { attempt: 1 }));
  expect(saved.step % saveEvery).toBe(0);
  expect(job).toMatchObject({
    state: 'succeeded',
    attempts: [
      {
        cause: {
          kind: 'exit_code',
          node: victim,
          nodeRank: 1,
          // Of torchrun's first line about it, or of its summary where that was written before it was ended.
          evidence: { text: expect.stringMatching(/^(?:local rank 0: ended by signal 9|rank 1: Signal 9 )/) },
        },
      },
      { cause: null, resume: saved },
    ],
  });
  expect(nodesOf(job, 2)[0]).toBe(nodesOf(job, 1)[0]);
  expect(output).toContain(`/${saved.name} at step ${saved.step}\n`);
  expect(/^iter (\d+): /m.exec(output)?.[1]).toBe(String(saved.step + 1));
  const undisturbed = await cluster.untilEnded(await cluster.submit(training()));
  expect(digest(output)).toMatch(/^sha256:/);
  expect(digest(output)).toBe(digest(await cluster.output(undisturbed.id)));

  const [died, next] = job.attempts;
  const moments = [killedAtMs, died?.endedAtMs, next?.allocatedAtMs, next?.runningAtMs, trainsAgainAtMs];
  const names = [
    'until the gang has ended',
    'of backoff',
    'until it runs again',
    "of the program's own start-up",
  ];
  const parts = names.map((name, index) => `${(moments[index + 1] ?? 0) - (moments[index] ?? 0)} ms ${name}`);
  await annotate(
    `from the kill to the first step after it: ${trainsAgainAtMs - killedAtMs} ms: ${parts.join(', ')}`,
    'time',
  );
});
