import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { JobId, TaskRef } from '@muster/common/ids';
import { afterEach, expect, test } from 'vitest';
import { foreignProcessesOn, type LiveProcess } from './foreignProcesses.ts';
import { emptySample, type GpuProcess } from './gpuSource.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 2, nodeRank: 0 };
const environmentOf = ({ jobId, attempt, nodeRank }: TaskRef) =>
  `HOME=/\0MUSTER_JOB_ID=${jobId}\0MUSTER_ATTEMPT=${attempt}\0MUSTER_NODE_RANK=${nodeRank}\0`;

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

function samples(processes: Readonly<Record<string, readonly number[] | null>>) {
  const inFull = (pids: readonly number[] | null): readonly GpuProcess[] | null =>
    pids?.map((pid) => ({ pid, memoryMb: null })) ?? null;
  const ofEach = Object.entries(processes).map(([uuid, pids]) => {
    return [uuid, { ...emptySample(uuid), processes: inFull(pids) }] as const;
  });
  return new Map(ofEach);
}

/** Of a process with this environment on the one GPU there is. */
const foreignProcesses = (process: LiveProcess | null) =>
  foreignProcessesOn(['GPU-1'], samples({ 'GPU-1': [7] }), [task], () => process);

test('a process of no task is foreign, and is named', () => {
  const found = [{ gpuUuid: 'GPU-1', pid: 7, name: 'python3' }];
  expect(foreignProcesses({ name: 'python3', environment: 'HOME=/\0' })).toEqual(found);
  expect(foreignProcesses({ name: 'python3', environment: environmentOf({ ...task, attempt: 1 }) })).toEqual(
    found,
  );
  expect(foreignProcesses({ name: 'python3', environment: null })).toEqual(found);
});

test('a process of a task that runs is none, and neither is one that has ended or serves whoever has the GPU', () => {
  expect(foreignProcesses({ name: 'python3', environment: environmentOf(task) })).toEqual([]);
  expect(foreignProcesses(null)).toEqual([]);
  expect(foreignProcesses({ name: 'nvidia-cuda-mps', environment: '' })).toEqual([]);
});

test('GPUs that were not asked for, were not read, or whose driver does not tell have none', () => {
  const seen = samples({ 'GPU-1': [7], 'MIG-1': [], 'MIG-2': [7], 'GPU-2': null });
  const look = () => ({ name: 'python3', environment: null });
  expect(foreignProcessesOn(['MIG-1', 'GPU-2', 'GPU-3'], seen, [], look)).toEqual([]);
  expect(foreignProcessesOn(['MIG-2'], seen, [], look)).toHaveLength(1);
});

test('processes are looked at as the kernel shows them', async () => {
  const env = {
    PATH: '/usr/bin:/bin',
    MUSTER_JOB_ID: task.jobId,
    MUSTER_ATTEMPT: '2',
    MUSTER_NODE_RANK: '0',
  };
  const child = spawn('sleep', ['600'], { env, stdio: 'ignore' });
  children.push(child);
  await once(child, 'spawn');
  const seen = samples({ 'GPU-1': [child.pid ?? 0] });
  const foreign = { gpuUuid: 'GPU-1', pid: child.pid, name: 'sleep' };
  await expect.poll(() => foreignProcessesOn(['GPU-1'], seen, [])).toEqual([foreign]);
  expect(foreignProcessesOn(['GPU-1'], seen, [task])).toEqual([]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(foreignProcessesOn(['GPU-1'], seen, [])).toEqual([]);
});
