import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { describe, expect, test } from 'vitest';
import { type EnvironmentInput, taskEnvironment } from './environment.ts';

const hopper = { uuid: 'GPU-5d0c1b2a', simulated: false };
const other = { uuid: 'GPU-6e1f2c3b', simulated: false };

/** Rank 1 of two nodes with two GPUs each, as a bare process. */
function environmentOf(
  changes: Partial<EnvironmentInput> = {},
  spec: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, string>> {
  return taskEnvironment({
    task: { jobId: 'job_0123456789ab' as JobId, attempt: 3, nodeRank: 1 },
    spec: decodeJobSpec(JSON.stringify({ name: 'llama', command: ['torchrun', 'train.py'], ...spec })),
    nodeCount: 2,
    gpus: [hopper, other],
    array: null,
    master: { addr: '10.0.0.1', port: 20_500 },
    addresses: ['10.0.0.1', '10.0.0.2'],
    network: { NCCL_IB_DISABLE: '1', GLOO_SOCKET_IFNAME: 'eth0' },
    checkpointDir: '/checkpoints/llama',
    resume: null,
    batchScale: 1,
    lrScale: 1,
    traceparent: null,
    ownDirectory: { path: '/tasks/t', errorFile: 'error.json' },
    hostfiles: null,
    base: { PATH: '/usr/bin', HOME: '/somewhere' },
    ...changes,
  });
}

test('a task finds the whole contract in its environment', () => {
  expect(environmentOf()).toEqual({
    PATH: '/usr/bin',
    HOME: '/somewhere',
    MUSTER_JOB_ID: 'job_0123456789ab',
    MUSTER_JOB_NAME: 'llama',
    MUSTER_ATTEMPT: '3',
    MUSTER_NODE_RANK: '1',
    MUSTER_NNODES: '2',
    MUSTER_CHECKPOINT_DIR: '/checkpoints/llama',
    MUSTER_RESUME_FROM: '',
    MUSTER_RESUME_STEP: '',
    MUSTER_BATCH_SCALE: '1',
    MUSTER_LR_SCALE: '1',
    MUSTER_ADDRESSES: '10.0.0.1,10.0.0.2',
    MASTER_ADDR: '10.0.0.1',
    MASTER_PORT: '20500',
    NNODES: '2',
    NODE_RANK: '1',
    NPROC_PER_NODE: '2',
    WORLD_SIZE: '4',
    PET_NNODES: '2',
    PET_NODE_RANK: '1',
    PET_NPROC_PER_NODE: '2',
    PET_MASTER_ADDR: '10.0.0.1',
    PET_MASTER_PORT: '20500',
    PET_RDZV_BACKEND: 'static',
    PET_RDZV_ID: 'job_0123456789ab.3',
    PET_LOCAL_ADDR: '10.0.0.2',
    PET_MAX_RESTARTS: '0',
    PET_MONITOR_INTERVAL: '0.1',
    CUDA_VISIBLE_DEVICES: 'GPU-5d0c1b2a,GPU-6e1f2c3b',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    NVIDIA_VISIBLE_DEVICES: 'GPU-5d0c1b2a,GPU-6e1f2c3b',
    TORCHELASTIC_ERROR_FILE: '/tasks/t/error.json',
    TORCH_NCCL_ASYNC_ERROR_HANDLING: '1',
    TORCH_NCCL_ENABLE_MONITORING: '1',
    TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: '600',
    TORCH_NCCL_DUMP_ON_TIMEOUT: '1',
    TORCH_NCCL_TRACE_BUFFER_SIZE: '2000',
    TORCH_FR_BUFFER_SIZE: '2000',
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE: '/tasks/t/nccl_trace_rank_',
    TORCH_FR_DUMP_TEMP_FILE: '/tasks/t/nccl_trace_rank_',
    NCCL_IB_DISABLE: '1',
    GLOO_SOCKET_IFNAME: 'eth0',
  });
});

test('what the user set wins over the contract and over the node', () => {
  const env = { MASTER_PORT: '1', CUDA_VISIBLE_DEVICES: '0', PATH: '/opt/bin', WANDB_PROJECT: 'demo' };
  expect(environmentOf({}, { env })).toMatchObject(env);
});

test('a task without GPUs runs one process and sees none of the GPUs of others', () => {
  expect(environmentOf({ gpus: [] })).toMatchObject({
    CUDA_VISIBLE_DEVICES: '',
    NVIDIA_VISIBLE_DEVICES: 'void',
    NPROC_PER_NODE: '1',
    PET_NPROC_PER_NODE: '1',
    WORLD_SIZE: '2',
  });
});

test('a program finds its place in a trace where there is one', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  expect(environmentOf({ traceparent })).toMatchObject({ TRACEPARENT: traceparent });
  expect(environmentOf()).not.toHaveProperty('TRACEPARENT');
});

test('an array job knows its place', () => {
  expect(environmentOf({ array: { index: 0, size: 8 } })).toMatchObject({
    MUSTER_ARRAY_INDEX: '0',
    MUSTER_ARRAY_SIZE: '8',
  });
  expect(environmentOf()).not.toHaveProperty('MUSTER_ARRAY_INDEX');
});

test('each attempt has a rendezvous of its own', () => {
  const task = { jobId: 'job_0123456789ab' as JobId, nodeRank: 0 };
  const ids = [1, 2].map((attempt) => environmentOf({ task: { ...task, attempt } })['PET_RDZV_ID']);
  expect(new Set(ids).size).toBe(2);
});

test('before its release a task knows no meeting place', () => {
  const env = environmentOf({ master: null, addresses: [] });
  const places = ['MASTER_ADDR', 'MASTER_PORT', 'PET_MASTER_ADDR', 'PET_MASTER_PORT', 'PET_LOCAL_ADDR'];
  for (const name of [...places, 'MUSTER_ADDRESSES']) expect(env).not.toHaveProperty(name);
  expect(env).toMatchObject({ WORLD_SIZE: '4', PET_NNODES: '2' });
});

test('an attempt smaller than the job would like has the size that it has', () => {
  expect(environmentOf({ nodeCount: 3 }, { resources: { nodes: { min: 1, max: 8 } } })).toMatchObject({
    NNODES: '3',
    WORLD_SIZE: '6',
    PET_NNODES: '3',
    MUSTER_NNODES: '3',
  });
});

test('MPI launchers find the file of the kind they read', () => {
  const hostfiles = { slots: '/t/hostfile', machines: '/t/machinefile' };
  expect(environmentOf({ hostfiles })).toMatchObject({
    MUSTER_HOSTFILE: '/t/hostfile',
    OMPI_MCA_orte_default_hostfile: '/t/hostfile',
    PRTE_MCA_prte_default_hostfile: '/t/hostfile',
    HYDRA_HOST_FILE: '/t/machinefile',
    I_MPI_HYDRA_HOST_FILE: '/t/machinefile',
  });
});

test('a job without a checkpoint directory gets none', () => {
  expect(environmentOf({ checkpointDir: null })).not.toHaveProperty('MUSTER_CHECKPOINT_DIR');
});

describe('in a container', () => {
  const image = { image: 'pytorch:24.01' };

  test('devices are shown by the driver, not named by UUIDs that may mean nothing inside', () => {
    const env = environmentOf({ base: {}, ownDirectory: null }, image);
    for (const name of [
      'TORCHELASTIC_ERROR_FILE',
      'TORCH_FR_DUMP_TEMP_FILE',
      'CUDA_VISIBLE_DEVICES',
      'CUDA_DEVICE_ORDER',
      'NVIDIA_VISIBLE_DEVICES',
      'PATH',
    ]) {
      expect(env).not.toHaveProperty(name);
    }
    expect(env).toMatchObject({ NPROC_PER_NODE: '2', WORLD_SIZE: '4' });
  });

  test('simulated GPUs, for which there is no device, are named', () => {
    const gpus = [{ uuid: 'GPU-SIMULATED-a-0', simulated: true }];
    expect(environmentOf({ gpus }, image)).toMatchObject({ CUDA_VISIBLE_DEVICES: 'GPU-SIMULATED-a-0' });
  });
});

test('an evaluation finds the checkpoint that it evaluates', () => {
  const resume = { path: '/ckpt/step_10.pt', step: 10 };
  const labels = { 'muster.evaluates': 'job_0123456789ab' };
  expect(environmentOf({ resume }, { labels })).toMatchObject({
    MUSTER_CHECKPOINT: '/ckpt/step_10.pt',
    MUSTER_CHECKPOINT_STEP: '10',
  });
  expect(environmentOf({ resume })).not.toHaveProperty('MUSTER_CHECKPOINT');
});
