import type { PendingReason } from '@muster/common/views';
import { expect, test } from 'vitest';
import { aJob, anAttempt, aSpec, aTask, nodeNameOf } from '../modelFixture.ts';
import { aCluster } from '../scheduler/clusterFixture.ts';
import { someProgress } from '../training/trainingFixture.ts';
import { withHolders } from './holders.ts';

const waiting = aJob(1, { spec: aSpec({ resources: { gpus: 2 } }) });
const reason: PendingReason = {
  kind: 'no_gpus_free',
  message: 'waiting for 2 free GPUs on one node (4 of 4 GPUs in use); node-9 is silent',
  remedy: null,
};
const { nodes } = aCluster().node({ gpus: 4, freeGpus: 0 }).view;

function holder(number: number, name: string) {
  const tasks = [aTask(0, { node: nodeNameOf('node-1'), gpuUuids: [`GPU-${number}`] })];
  return aJob(number, {
    spec: aSpec({ name }),
    lastAttempt: 1,
    state: { kind: 'running', attempt: anAttempt(1, { tasks }) },
  });
}
const [llama, mixtral, other] = [holder(2, 'llama-8b'), holder(3, 'mixtral'), holder(4, 'other')] as const;

/** Only of llama-8b is known how long it takes. */
const taskStatus = {
  of: ({ jobId }: { readonly jobId: string }) => ({
    ...{ frozen: false, doing: null, hang: null, signs: [] },
    training: jobId === llama.id ? someProgress({ etaMs: 12 * 60_000 }) : null,
  }),
};
const told = (jobs: Parameters<typeof withHolders>[2], of = reason) =>
  withHolders(of, waiting, jobs, nodes, taskStatus).message;

test('those who have the GPUs are named, with what is left of them where that is known', () => {
  expect(told([llama])).toBe(
    'waiting for 2 free GPUs on one node (4 of 4 GPUs in use: llama-8b, ~12 min left); node-9 is silent',
  );
  expect(told([other, mixtral, llama])).toContain('in use: llama-8b, ~12 min left; mixtral; and 1 more)');
});

test('where nobody in particular has them, nobody is named', () => {
  expect(told([])).toBe(reason.message);
  expect(told([llama], { ...reason, kind: 'no_cpus_free' })).toBe(reason.message);
});
