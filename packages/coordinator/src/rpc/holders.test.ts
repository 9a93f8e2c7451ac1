import { expect, test } from 'vitest';
import { aJob, anAttempt, aSpec, aTask, nodeNameOf } from '../modelFixture.ts';
import { aCluster } from '../scheduler/clusterFixture.ts';
import { someProgress } from '../training/trainingFixture.ts';
import { gpuHolders } from './holders.ts';

const waiting = aJob(1, { spec: aSpec({ resources: { gpus: 2 } }) });
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
    frozen: false,
    doing: null,
    hang: null,
    signs: [],
    training: jobId === llama.id ? someProgress({ etaMs: 12 * 60_000 }) : null,
  }),
};
const named = (jobs: Parameters<typeof gpuHolders>[1]) =>
  gpuHolders(waiting, jobs, nodes, taskStatus).map(({ name, etaMs }) => [name, etaMs]);

test('those who have the GPUs are named: first what ends first, by what is known of it', () => {
  expect(named([other, mixtral, llama])).toEqual([
    ['llama-8b', 12 * 60_000],
    ['mixtral', null],
    ['other', null],
  ]);
});

test('where nobody in particular has them, nobody is named', () => {
  expect(named([])).toEqual([]);
});
