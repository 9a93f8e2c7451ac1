import { expect, test } from 'vitest';
import { linesOf } from '../lines/lineReader.ts';
import { FailureReader, signatureRules } from './failureReader.ts';

interface Example {
  /** The last line is the evidence. */
  readonly hit: string;
  /** Much like it, and of a program with which all is well, or another cause. */
  readonly miss: string;
  readonly missIs?: string;
}

const traceback = (frame: string, last: string) =>
  `Traceback (most recent call last):\n  File "/srv/job.py", line 12, in <module>\n    ${frame}\n${last}`;

const examples: Readonly<Record<string, Example>> = {
  'nvlink error': {
    hit: 'RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution',
    miss: 'NVLink error counters: replay 0, recovery 0',
  },
  'ecc error': {
    hit: 'terminate: CUDA error: uncorrectable ECC error encountered',
    miss: 'GPU 0: Uncorrectable ECC errors: 0, ECC error mode enabled',
  },
  'gpu lost': {
    hit: 'Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU',
    miss: 'GPU 0000:02:00.0: the device handle is known, none is lost',
  },
  'shared memory': {
    hit: 'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).',
    miss: 'found 64 GiB of shared memory in /dev/shm, 12 loader processes',
  },
  'disk full': {
    hit: traceback('f.write(block)', 'OSError: [Errno 28] No space left on device'),
    miss: 'checking disk: 80 GiB free, stop when there is No space left',
  },
  'storage failed': {
    hit: 'RuntimeError: write(): fd 29 failed with Input/output error',
    miss: 'write(): fd 29 has failed 0 times, Input/output errors 0',
  },
  'corrupt checkpoint': {
    hit: 'safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge',
    miss: traceback(
      'torch.load(path)',
      '_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load`',
    ),
    missIs: 'python_exception',
  },
  'empty checkpoint': {
    hit: traceback('state = torch.load(path)', 'EOFError: Ran out of input'),
    miss: traceback('job = reduction.pickle.load(from_parent)', 'EOFError: Ran out of input'),
    missIs: 'python_exception',
  },
  'gpu memory': {
    hit: 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB',
    miss: 'on "CUDA out of memory" the batch will be halved',
  },
  'ray host memory': {
    hit: 'ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.',
    miss: '(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM), 3 started',
  },
  'illegal access': {
    hit: 'RuntimeError: CUDA error: an illegal memory access was encountered',
    miss: 'compute-sanitizer: 0 illegal memory access errors',
  },
  'device assert': {
    hit: '/pytorch/aten/src/ATen/native/cuda/Loss.cu:242: nll_loss: block: [0,0,0], thread: [5,0,0] Assertion `t < n` failed.',
    miss: 'device-side assertions are compiled in (TORCH_USE_CUDA_DSA)',
  },
  'suspect gpu': {
    hit: 'RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable',
    miss: 'device 0 is CUDA-capable, 8 devices are available',
  },
  'launch failure': {
    hit: 'RuntimeError: CUDA error: unspecified launch failure',
    miss: 'launch failure policy: unspecified',
  },
  'loss scale': {
    hit: 'Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.',
    miss: 'dynamic loss scale: initial 65536, minimum 1',
  },
  'nan found': {
    hit: 'Loss is nan, stopping training',
    miss: 'checks: stop when loss is nan: on, stop when found NaN in gradients: on',
  },
  'host memory refused': {
    hit: "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 137438953472 bytes.",
    miss: 'DefaultCPUAllocator: peak 12 GiB',
  },
  'killed by the kernel': {
    hit: 'slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.',
    miss: 'cgroup: oom_kill 0',
  },
  'killed data loader': {
    hit: 'RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.',
    miss: 'DataLoader worker (pid 4711) is ready; it is killed at the end',
  },
  'library missing': {
    hit: 'python: error while loading shared libraries: libcudart.so.12: cannot open shared object file: No such file or directory',
    miss: 'loading shared libraries from /usr/local/cuda/lib64',
  },
  'script missing': {
    hit: "/usr/bin/python3: can't open file '/srv/trian.py': [Errno 2] No such file or directory",
    miss: "cache: can't open file yet, it is made now",
  },
  'collective timeout': {
    hit: '[rank3]:[E813 12:25 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77)',
    miss: 'NCCL watchdog is on, timeout of a collective operation: Timeout(ms)=600000',
  },
  'watchdog stuck': {
    hit: '[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info.',
    miss: '[rank1]:[I ProcessGroupNCCL.cpp:800] [PG 0 Rank 1] Heartbeat monitor is on, times out after 600 seconds',
  },
  'peer lost': {
    hit: 'RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:4242',
    miss: 'node-1:12:12 [0] NCCL INFO Connection to the proxy: closed 0 of 8',
  },
  'nccl misused': {
    hit: 'node-1:77:77 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000',
    miss: 'no duplicate GPU: 8 ranks on 8 devices',
  },
  'rdma completion': {
    hit: 'node-1:77:90 [0] transport/net_ib.cc:1440 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4242> with error 12, opcode 0, len 0, vendor err 129',
    miss: 'node-1:77:90 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4242> with status=0 opcode=2',
  },
  'rdma flushed': {
    hit: 'node-1:77:90 [0] transport/net_ib.cc:1440 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4242> with error 5, opcode 0, len 0, vendor err 249',
    miss: 'node-1:77:90 [0] NCCL TRACE NET/IB : Got completion from peer 10.0.0.2<4242> with error 5',
  },
  'nccl system error': {
    hit: 'ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.',
    miss: 'node-1:77:90 [0] NCCL INFO NET/IB : Got completion with status=0 opcode=2',
  },
  'nccl error': {
    hit: 'ncclInternalError: Internal check failed.',
    miss: 'on a DistBackendError the program leaves its context',
  },
  'rendezvous closed': {
    hit: 'torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.',
    miss: 'Rendezvous settings: keep-alive heartbeat every 5 s, 3 times',
  },
  rendezvous: {
    hit: 'torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.',
    miss: 'Rendezvous: waiting for clients, at most 900 seconds, server socket on port 29500',
  },
  'ray actor lost': {
    hit: 'ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.',
    miss: 'retry_exceptions=[ray.exceptions.ActorDiedError, ray.exceptions.WorkerCrashedError]',
  },
  'stop requested': {
    hit: 'W0227 17:39:41.934000 293814 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers',
    miss: 'handler of the death signal is installed',
  },
  'workers closed': {
    hit: 'WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812914 closing signal SIGTERM',
    miss: 'closing signal for workers: SIGTERM',
  },
};

function read(output: string) {
  const reader = new FailureReader();
  for (const line of linesOf(output)) reader.line(line);
  return reader.result();
}

test('every rule has an example, and its name once', () => {
  expect(Object.keys(examples).sort()).toEqual(signatureRules.map(({ name }) => name).sort());
});

test.each(signatureRules.map((rule) => [rule.name, rule] as const))('%s', (name, rule) => {
  const { hit, miss, missIs } = examples[name] ?? { hit: '', miss: '' };
  const { found } = read(`step 1\n${hit}\n`);
  expect(found).toMatchObject({ kind: rule.kind, strength: rule.strength });
  expect(found?.evidence.line, 'the line it was in').toBe(1 + hit.split('\n').length);
  expect(hit).toContain(found?.evidence.text);
  expect(read(`step 1\n${miss}\n`).found?.kind ?? null, 'near miss').toBe(missIs ?? null);
});

test.each([
  [
    'RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 2; 23.69 GiB total capacity; 11.94 MiB free; 22.02 GiB cached)',
    'cuda_oom',
  ],
  ['RuntimeError: CUDA error: hardware error', 'gpu_hw_ecc'],
  ['RuntimeError: CUDA error: out of memory', 'gpu_suspect'],
  ['RuntimeError: CUDA error: no CUDA-capable device is detected', 'gpu_suspect'],
  ['RuntimeError: CUDA error: device-side assert triggered', 'python_exception'],
  ['RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 6656 vs 6548', 'disk_full'],
  ['RuntimeError: File out/ckpt_7.pt cannot be opened.', 'disk_full'],
  ['OSError: [Errno 122] Disk quota exceeded: out/ckpt.pt', 'disk_full'],
  ["OSError: [Errno 28] No space left on device: '/dev/shm/torch_4711'", 'shm_exhausted'],
  [
    'node-1:1:9 [2] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-AbC (size 9637888)',
    'shm_exhausted',
  ],
  ['RuntimeError: PytorchStreamReader failed reading zip archive: not a ZIP archive', 'corrupt_checkpoint'],
  [
    'SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered',
    'corrupt_checkpoint',
  ],
  ["_pickle.UnpicklingError: invalid load key, '\\x00'.", 'corrupt_checkpoint'],
  [
    'FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.',
    'loss_scale_exhausted',
  ],
  [
    'AssertionError: Rank 3: found NaN in local grad norm in backward pass before data-parallel communication collective.',
    'nan_loss',
  ],
  [
    'node-1:1:9 [2] NCCL WARN NET/IB : Got completion from peer 10.0.0.3<4242> with status=12 opcode=0 len=0 vendor err 129',
    'nccl_error',
  ],
  [
    'torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details)',
    'nccl_error',
  ],
  [
    '[E socket.cpp:435] The server socket has failed to listen on any local network address. code: -98, message: address already in use',
    'rendezvous',
  ],
  [
    '[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).',
    'rendezvous',
  ],
  [
    'torch.distributed.DistNetworkError: The client socket has timed out after 60s while trying to connect to (10.0.0.1, 29500).',
    'rendezvous',
  ],
  ['slurmstepd: error: *** STEP 4711.0 ON node-1 CANCELLED AT 2026-01-05T10:00:00 ***', 'stopped_by_signal'],
])('%s', (line, kind) => expect(read(`${line}\n`).found?.kind).toBe(kind));

test.each([
  [
    'torch 1',
    '(GPU 0; 79.15 GiB total capacity; 8.10 GiB already allocated; 10.00 MiB free; 9.00 GiB reserved in total by PyTorch)',
    'platform',
  ],
  [
    'torch 2',
    'GPU 0 has a total capacity of 79.15 GiB of which 10.00 MiB is free. Including non-PyTorch memory, this process has 29.10 GiB memory in use.',
    'platform',
  ],
  [
    'its own memory',
    'GPU 0 has a total capacity of 79.15 GiB of which 10.00 MiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use.',
    'job',
  ],
])('whose memory it is: %s', (_, usage, blame) => {
  const { found } = read(`torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. ${usage}`);
  expect(found).toMatchObject({ kind: 'cuda_oom', blame });
});

test('what would not fit into an empty GPU is its own fault, whoever else is there', () => {
  const line =
    'CUDA out of memory. Tried to allocate 99.00 GiB (GPU 0; 79.15 GiB total capacity; 1.00 GiB free; 2.00 GiB reserved in total by PyTorch)';
  expect(read(`RuntimeError: ${line}`).found?.blame).toBe('job');
});

test('the same launch failure on one rank makes its GPU suspect, on several the program', () => {
  const line = (rank: number) => `[rank${rank}]: RuntimeError: CUDA error: unspecified launch failure\n`;
  expect(read(line(2)).found).toMatchObject({ kind: 'gpu_suspect', blame: 'gpu' });
  expect(read(line(2) + line(5)).found).toMatchObject({ kind: 'cuda_illegal_access', blame: 'job' });
});
