/** Readings for tests, and a job that runs on two GPUs of two nodes. */
import type { GpuReading } from '@muster/common/telemetry';
import { aJob, anAttempt, aTask, jobIdOf, nodeNameOf, someMs } from '../modelFixture.ts';
import type { Memory } from '../store/memory/memoryStore.ts';

export function aReading(fields: Partial<GpuReading> = {}): GpuReading {
  return {
    gpuUuid: 'GPU-node-1-0',
    atMs: someMs,
    intervalMs: 10_000,
    task: null,
    utilization: 50,
    memoryUsedMb: 40_000,
    powerWatts: 300,
    energyJoules: 3_000,
    smActive: null,
    tensorActive: null,
    dramActive: null,
    temperature: 60,
    nvlinkReceiveBytes: null,
    nvlinkTransmitBytes: null,
    ...fields,
  };
}

export const runningJobId = jobIdOf(1);

/** Rank 0 holds the first GPU of node-1, rank 1 the first GPU of node-2. */
export const runningJob = aJob(1, {
  lastAttempt: 1,
  state: {
    kind: 'running',
    attempt: anAttempt(1, {
      state: 'running',
      tasks: [0, 1].map((rank) =>
        aTask(rank, {
          node: nodeNameOf(`node-${rank + 1}`),
          gpuUuids: [`GPU-node-${rank + 1}-0`],
          state: 'running',
        }),
      ),
    }),
  },
});

/** Stores the job as if it had been running when an earlier coordinator stopped. */
export function storeRunningJob(memory: Memory): void {
  const { id, submitSeq, state } = runningJob;
  memory.jobs.set(id, runningJob);
  memory.jobsBySubmitSeq.set(submitSeq, id);
  if (state.kind === 'running') memory.attempts.set(id, new Map([[1, state.attempt]]));
}
