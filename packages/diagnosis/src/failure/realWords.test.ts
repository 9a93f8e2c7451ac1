/** Whole ends of programs, in the words of each, and what they mean. */
import { expect, test } from 'vitest';
import { LogDiagnosis } from '../diagnose.ts';
import type { Diagnosis } from '../model.ts';

function diagnose(output: string): Diagnosis {
  const log = new LogDiagnosis();
  log.feed(Buffer.from(`loading\n${output}\n`));
  log.end();
  return log.result();
}

const containerMemory = (processGib: number, allocatedGib: number) =>
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which ' +
  `10.00 MiB is free. Process 4711 has ${processGib} GiB memory in use. Of the allocated memory ${allocatedGib} GiB is ` +
  'allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.';

test.each<[string, Partial<Diagnosis>]>([
  [
    'ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.',
    { cause: 'host_oom', blame: 'job' },
  ],
  [
    '(raylet) [2025-01-05 10:00:00,000 E 77 77] node_manager.cc:3007: 2 Workers (tasks / actors) killed due to memory pressure (OOM)',
    { cause: 'host_oom' },
  ],
  [
    'ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.',
    { cause: 'unknown' },
  ],
  [
    'RuntimeError: CUDA Error: out of memory at /srv/vllm/csrc/cumem_allocator.cpp:62',
    { cause: 'cuda_oom', blame: 'job' },
  ],
  [
    '(WorkerDict pid=77, ip=10.0.0.2) Traceback (most recent call last):\n' +
      '(WorkerDict pid=77, ip=10.0.0.2)   File "/srv/worker.py", line 9, in step\n' +
      '(WorkerDict pid=77, ip=10.0.0.2) KeyError: a process of Ray',
    { cause: 'python_exception' },
  ],
  ['RuntimeError: CUDA error: out of memory', { cause: 'gpu_suspect', blame: 'gpu' }],
  [
    'RuntimeError: write(): fd 29 failed with Input/output error',
    { cause: 'python_exception', blame: 'storage', retry: 'other_node' },
  ],
  ['RuntimeError: write(): fd 29 failed with No space left on device', { cause: 'disk_full' }],
  [
    '[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info.',
    { cause: 'nccl_timeout', blame: 'unknown' },
  ],
  [
    'node-1:77:90 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with error 4, opcode 32, len 0, vendor err 81',
    { cause: 'nccl_error', blame: 'node' },
  ],
  [
    'mlx5: host_unknown: got completion with error:\n' +
      '00000000 00000000 00000000 00000000\n'.repeat(3) +
      '00000000 00008813 080004d2 0001e8d2\n' +
      '[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2005, remote process exited',
    {
      cause: 'nccl_error',
      blame: 'network',
      evidence: { line: 2, rank: null, text: 'mlx5: host_unknown: got completion with error:' },
    },
  ],
  ['mlx5: node-1: got completion with error:', { cause: 'nccl_error', blame: 'network' }],
  ["node-1:77:90 [0] init.cc:12 NCCL WARN Cuda failure 999 'unknown error'", { cause: 'gpu_suspect' }],
  [
    '2025-01-05 10:00:00.1: W bfc_allocator.cc:275] Ran out of memory trying to allocate 39.81MiB.',
    { cause: 'cuda_oom' },
  ],
  [
    'THCudaCheck FAIL file=/srv/THC/generic/THCStorage.cu line=66 error=2 : out of memory',
    { cause: 'cuda_oom' },
  ],
  [
    'THCudaCheck FAIL file=/srv/THC/THCGeneral.cpp line=66 error=46 : all CUDA-capable devices are busy or unavailable',
    { cause: 'gpu_suspect' },
  ],
  [
    'Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU',
    { cause: 'gpu_suspect', blame: 'gpu' },
  ],
  [
    'ImportError: /opt/venv/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN2at',
    { cause: 'import_error' },
  ],
  [
    '  File "/srv/train.py", line 9, in <module>\n    main()\nValueError: a traceback whose beginning was cut off',
    {
      cause: 'python_exception',
      evidence: { line: 4, rank: null, text: 'ValueError: a traceback whose beginning was cut off' },
    },
  ],
  [
    '*** STEP 17.0 ON node-1 CANCELLED AT 2025-01-05T10:00:00 DUE TO PREEMPTION ***',
    { cause: 'stopped_by_signal' },
  ],
  [containerMemory(79, 30), { cause: 'cuda_oom', blame: 'platform' }],
  [containerMemory(79, 77), { cause: 'cuda_oom', blame: 'job' }],
])('%s', (output, found) => expect(diagnose(output)).toMatchObject(found));

test('a loss that jumps after few rows is seen', () => {
  const row = (step: number, loss: number) => `{"step": ${step}, "loss": ${loss}}`;
  const rows = [row(1, 2.5), row(2, 2.4), row(3, 2.4), row(4, 6.6)];
  expect(diagnose(rows.join('\n')).cause).toBe('loss_spike');
});
