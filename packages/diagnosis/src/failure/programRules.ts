/** Of what a program does to itself: memory, kernels of its own, numbers, libraries. */

import type { FailureVerdict } from './finding.ts';
import type { SignatureRule } from './signature.ts';

export const programRules: readonly SignatureRule[] = [
  {
    name: 'ray host memory',
    kind: 'host_oom',
    strength: 'program',
    patterns: [
      /\bray\.exceptions\.OutOfMemoryError\b/,
      /Task was killed due to the node running low on memory/,
      /\b[1-9]\d{0,8} Workers \(tasks \/ actors\) killed due to memory pressure/,
    ],
    hints: ['OutOfMemoryError', 'Task was killed', 'Workers (tasks'],
  },
  {
    name: 'gpu memory',
    kind: 'cuda_oom',
    strength: 'program',
    patterns: [
      /CUDA out of memory\. Tried to allocate \d/,
      /^torch(?:\.cuda)?\.OutOfMemoryError(?::|$)/,
      /Cuda failure (?:\d{1,4} )?'out of memory'/,
      /RESOURCE_EXHAUSTED: Out of memory/,
      // vLLM's allocator; with a small e, and no size, it is the error of a GPU that others fill (below).
      /CUDA Error: out of memory/,
      // TensorFlow
      /bfc_allocator\.cc:\d{1,5}\] Ran out of memory trying to allocate/,
      /OOM when allocating tensor/,
      // PyTorch before 1.0
      /THCudaCheck FAIL .{1,200} error=2 : out of memory/,
      /cuda runtime error \(2\) : out of memory/,
    ],
    hints: [
      'CUDA out of memory',
      'OutOfMemoryError',
      'Cuda failure',
      'RESOURCE_EXHAUSTED',
      'CUDA Error',
      'bfc_allocator',
      'OOM when',
      'THCudaCheck',
      'cuda runtime error',
    ],
    // TensorFlow tries, and reports that it continues without what did not fit.
    unless: /not a failure|by allocator cpu/,
    weigh: memoryVerdict,
  },
  {
    name: 'illegal access',
    kind: 'cuda_illegal_access',
    strength: 'program',
    patterns: [
      /CUDA error: an illegal memory access was encountered/,
      /cudaErrorIllegalAddress/,
      /CUDA_ERROR_ILLEGAL_ADDRESS/,
      /Cuda failure (?:\d{1,4} )?'an illegal memory access was encountered'/,
      /cuda runtime error \(77\)/,
    ],
    hints: ['CUDA error', 'cudaErrorIllegal', 'CUDA_ERROR_ILLEGAL', 'Cuda failure', 'cuda runtime error'],
  },
  {
    name: 'device assert',
    kind: 'python_exception',
    strength: 'program',
    patterns: [
      /device-side assert triggered/,
      /: block: \[[\d,]{1,40}\], thread: \[[\d,]{1,40}\] Assertion /,
    ],
    hints: ['device-side assert', '] Assertion '],
    advice:
      'An index or label is out of range in a GPU kernel: run it with CUDA_LAUNCH_BLOCKING=1 in env to see where; a retry fails in the same way.',
  },
  {
    name: 'suspect gpu',
    kind: 'gpu_suspect',
    strength: 'program',
    patterns: [
      /CUDA error: (?:out of memory|unknown error|no CUDA-capable device is detected)/,
      [/CUDA error: /, /CUDA-capable device(?:\(s\)|s)? (?:is\/)?are busy or unavailable/],
      /Cuda failure (?:\d{1,4} )?'unknown error'/,
      // PyTorch before 1.0
      /THCudaCheck FAIL .{1,200} error=46 : /,
      /cuda runtime error \(46\)/,
    ],
    hints: ['CUDA error', 'Cuda failure', 'THCudaCheck', 'cuda runtime error'],
  },
  {
    name: 'launch failure',
    kind: 'gpu_suspect',
    strength: 'program',
    patterns: [/CUDA error: unspecified launch failure/],
    hints: ['CUDA error'],
    onSeveralRanks: { kind: 'cuda_illegal_access' },
  },
  {
    name: 'loss scale',
    kind: 'loss_scale_exhausted',
    strength: 'program',
    patterns: [/Current loss scale already at minimum/, /Minimum loss scale reached/],
    hints: ['loss scale already', 'loss scale reached'],
  },
  {
    name: 'nan found',
    kind: 'nan_loss',
    strength: 'program',
    patterns: [
      /found NaN in local grad norm/i,
      /The loss returned in `training_step` is (?:nan|inf)/i,
      /^Loss is (?:nan|-?inf), stopping training/i,
    ],
    hints: ['NaN in local', 'returned in `training_step`', ', stopping training'],
  },
  {
    name: 'host memory refused',
    kind: 'host_oom',
    strength: 'program',
    patterns: [
      /DefaultCPUAllocator: (?:can't allocate|not enough) memory/,
      /\[Errno 12\] Cannot allocate memory/,
    ],
    hints: ['DefaultCPUAllocator', 'Errno 12'],
  },
  {
    name: 'killed by the kernel',
    kind: 'host_oom',
    strength: 'program',
    patterns: [
      /Out of memory: Killed process \d/i,
      /Memory cgroup out of memory: Killed process/i,
      /oom-kill:constraint=/i,
      /Detected [1-9]\d{0,8} oom.kill event/i,
      /killed by the cgroup out-of-memory handler/i,
    ],
    hints: ['illed process', 'oom-kill', 'oom_kill', 'oom kill', 'out-of-memory handler'],
  },
  {
    name: 'killed data loader',
    kind: 'host_oom',
    strength: 'exit',
    patterns: [/DataLoader worker \(pid\(?s?\)? [\d, ]{1,400}\) is killed by signal: Killed/],
    hints: ['is killed by signal'],
    needsProof: true,
  },
  {
    name: 'library missing',
    kind: 'import_error',
    strength: 'program',
    patterns: [
      /error while loading shared libraries: /,
      /symbol lookup error: /,
      /^\S{0,400}?python[\d.]{0,12}: No module named /,
      // The end of a traceback whose beginning was cut off: programs that continue without it do not print the whole path.
      /^ImportError: \S{1,600}\.so[\d.]{0,20}: (?:undefined symbol|cannot open shared object file)/,
    ],
    hints: ['shared libraries', 'symbol lookup', 'No module named', 'ImportError: '],
  },
  {
    name: 'script missing',
    kind: 'python_exception',
    strength: 'program',
    patterns: [/^\S{0,400}?python[\d.]{0,12}: can't open file /],
    hints: ["can't open file"],
    advice: 'Check command and workdir of the spec: the script is not there.',
  },
];

/**
 * The process that filled the GPU. PyTorch prints how much memory the device has, how much of it is free, and how much this process holds:
 * to 2.0 as `(GPU 0; 23.69 GiB total capacity; … 11.94 MiB free; 22.02 GiB reserved in total by PyTorch)` (before 1.5
 * `cached`), since 2.1 as `GPU 0 has a total capacity of 79.15 GiB of which 10 MiB is free. … this process has 30 GiB memory
 * in use`, or in a container `Process 7 has 70 GiB memory in use` of each. What nobody of these holds is somebody else's.
 */
const unitBytes: Readonly<Record<string, number>> = {
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  bytes: 1,
};
/** A search begins where a number does, so that a line of digits is gone through once. */
const wanted = /Tried to allocate ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB)/;
const total =
  /(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) total capacity|total capacity of ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB)/;
const free =
  /(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) free|of which ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is free/;
const own =
  /this process has ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) memory in use|(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) (?:reserved in total|cached)/;
/** In a container PyTorch does not know itself among the processes that it lists (`Process 7 has 70 GiB memory in use`). */
const allocated = /([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is allocated by PyTorch/;
const unallocated = /([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is reserved by PyTorch/;

/** A foreign process holds less than this of the device: contexts and drivers take some as well. */
const foreignShareMin = 0.25;

function memoryVerdict(text: string): FailureVerdict {
  const totalBytes = bytesOf(text, total);
  const freeBytes = bytesOf(text, free);
  const ownBytes = bytesOf(text, own) ?? ownOfParts(text);
  const wantedBytes = bytesOf(text, wanted);
  if (totalBytes === null || freeBytes === null || ownBytes === null || wantedBytes === null) return {};
  const foreignBytes = totalBytes - freeBytes - ownBytes;
  // What would not have fitted into an empty GPU either is nobody's fault but its own.
  const wouldFit = ownBytes + wantedBytes < totalBytes;
  if (!wouldFit || foreignBytes < foreignShareMin * totalBytes) return {};
  return {
    blame: 'platform',
    retry: 'other_node',
    advice:
      'Another process holds much of that GPU (nvidia-smi shows which): end it, or retry on another node; the program itself would have fitted.',
  };
}

function ownOfParts(text: string): number | null {
  const inUse = bytesOf(text, allocated);
  return inUse === null ? null : inUse + (bytesOf(text, unallocated) ?? 0);
}

function bytesOf(text: string, pattern: RegExp): number | null {
  const [, ...groups] = pattern.exec(text) ?? [];
  const at = groups.findIndex((group) => group !== undefined);
  const factor = unitBytes[groups[at + 1] ?? ''];
  return at < 0 || factor === undefined ? null : Number(groups[at]) * factor;
}
