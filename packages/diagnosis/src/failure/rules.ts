/**
 * The signatures of failures, as data: what programs, CUDA, NCCL, PyTorch, launchers and the kernel write when something
 * breaks. Exceptions in general and the reports of launchers have a form of their own: exceptions.ts, launchers.ts.
 *
 * A pattern is as narrow as the real text allows. Words such as "error", "timeout" or "out of memory" alone stand in the
 * settings and warnings of healthy programs.
 */
import type { Blame, CauseKind } from '@muster/common/spec/causes';
import type { RetryAdvice } from '../words.ts';
import type { Strength, Verdict } from './finding.ts';
import { memoryVerdict } from './gpuMemory.ts';

export interface SignatureRule {
  /** Unique. */
  readonly name: string;
  readonly kind: CauseKind;
  readonly strength: Strength;
  /** One of them is enough. */
  readonly patterns: readonly RegExp[];
  /** One of these is in every line that a pattern matches: most lines are passed over by looking for them. */
  readonly hints: readonly string[];
  /** Not when this matches as well. */
  readonly unless?: RegExp;
  /** Only when the traceback above it has this. */
  readonly within?: RegExp;
  /** It follows from the end of another process. */
  readonly consequence?: true;
  /** A warning that says it counts as much as an error. */
  readonly atAnyLevel?: true;
  /** Only the kernel can tell that it is so: see `ProcessEnd.oomKilled`. */
  readonly needsProof?: true;
  /** It means this when several ranks say it, since one GPU cannot be the reason any more. */
  readonly onSeveralRanks?: Verdict;
  /** In place of what is usual for the kind. */
  readonly blame?: Blame;
  readonly retry?: RetryAdvice;
  readonly advice?: string;
  /** What the line itself says about blame. */
  readonly weigh?: (text: string) => Verdict;
}

/** The first that matches a line counts. */
export const signatureRules: readonly SignatureRule[] = [
  {
    name: 'nvlink error',
    kind: 'gpu_hw_nvlink',
    strength: 'hardware',
    patterns: [/uncorrectable NVLink error detected during the execution/, /cudaErrorNvlinkUncorrectable/],
    hints: ['NVLink error', 'cudaErrorNvlink'],
  },
  {
    name: 'ecc error',
    kind: 'gpu_hw_ecc',
    strength: 'hardware',
    patterns: [
      /uncorrectable ECC error encountered/,
      /cudaErrorECCUncorrectable/,
      /CUDA error: hardware error/,
    ],
    hints: ['ECC error', 'cudaErrorECC', 'CUDA error'],
  },
  {
    name: 'shared memory',
    kind: 'shm_exhausted',
    strength: 'storage',
    patterns: [
      /Unexpected bus error encountered in worker/,
      /is killed by signal: Bus error/,
      /Error while creating shared memory segment/,
      /No space left on device.*\/dev\/shm\//,
      /\/dev\/shm\/.*No space left on device/,
      /unable to (?:allocate|resize|mmap|write) .{0,60}shared memory/,
    ],
    hints: ['bus error', 'Bus error', 'shared memory', '/dev/shm'],
  },
  {
    name: 'disk full',
    kind: 'disk_full',
    strength: 'storage',
    patterns: [
      /\[Errno 28\]/,
      /: No space left on device/,
      /\(os error 28\)/,
      /kind: StorageFull/,
      /\[Errno 122\]/,
      /: Disk quota exceeded/,
      /PytorchStreamWriter failed writing file/,
      /inline_container\.cc.*unexpected pos \d+ vs \d+/,
      /RuntimeError: File \S.* cannot be opened/,
    ],
    hints: [
      'rrno',
      'No space left',
      'os error',
      'StorageFull',
      'quota exceeded',
      'PytorchStreamWriter',
      'unexpected pos',
      'cannot be opened',
    ],
  },
  {
    name: 'corrupt checkpoint',
    kind: 'corrupt_checkpoint',
    strength: 'storage',
    patterns: [
      /PytorchStreamReader failed/,
      /SafetensorError: Error while deserializing/,
      /SafetensorError: .*(?:HeaderTooLarge|InvalidHeader|MetadataIncomplete|header too large|incomplete metadata)/,
      /\b_?pickle\.UnpicklingError/,
      /unexpected EOF, expected \d+ more bytes\. The file might be corrupted/,
    ],
    hints: ['PytorchStreamReader', 'SafetensorError', 'UnpicklingError', 'unexpected EOF'],
    // A whole file that holds more than tensors.
    unless: /Weights only load failed/,
  },
  {
    name: 'empty checkpoint',
    kind: 'corrupt_checkpoint',
    strength: 'storage',
    patterns: [/^EOFError: Ran out of input/],
    hints: ['EOFError'],
    // Pickles that are no checkpoints end early too: those of a process whose parent has died.
    within: /torch[/.]|load_checkpoint|load_state|safetensors|from_pretrained|resume/,
  },
  {
    name: 'gpu memory',
    kind: 'cuda_oom',
    strength: 'program',
    patterns: [
      /CUDA out of memory\. Tried to allocate \d/,
      /^torch(?:\.cuda)?\.OutOfMemoryError\b/,
      /Cuda failure (?:\d+ )?'out of memory'/,
      /RESOURCE_EXHAUSTED: Out of memory/,
    ],
    hints: ['CUDA out of memory', 'OutOfMemoryError', 'Cuda failure', 'RESOURCE_EXHAUSTED'],
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
    ],
    hints: ['CUDA error', 'cudaErrorIllegal', 'CUDA_ERROR_ILLEGAL'],
  },
  {
    name: 'device assert',
    kind: 'python_exception',
    strength: 'program',
    patterns: [/device-side assert triggered/, /: block: \[[\d,]+\], thread: \[[\d,]+\] Assertion .* failed/],
    hints: ['device-side assert', '] Assertion '],
    advice:
      'An index or label is out of range in a GPU kernel: run it with CUDA_LAUNCH_BLOCKING=1 in env to see where; a retry fails in the same way.',
  },
  {
    name: 'suspect gpu',
    kind: 'gpu_suspect',
    strength: 'program',
    patterns: [
      /CUDA error: (?:out of memory|unknown error|no CUDA-capable device is detected|.*CUDA-capable device(?:\(s\)|s)? (?:is\/)?are busy or unavailable)/,
    ],
    hints: ['CUDA error'],
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
      /DefaultCPUAllocator: (?:can't|not enough) .*(?:allocate )?memory/,
      /\[Errno 12\] Cannot allocate memory/,
    ],
    hints: ['DefaultCPUAllocator', 'Errno 12'],
  },
  {
    name: 'killed by the kernel',
    kind: 'host_oom',
    strength: 'program',
    patterns: [
      /Out of memory: Killed process \d+/i,
      /Memory cgroup out of memory: Killed process/i,
      /oom-kill:constraint=/i,
      /Detected \d+ oom.kill event/i,
      /killed by the cgroup out-of-memory handler/i,
    ],
    hints: ['illed process', 'oom-kill', 'oom_kill', 'oom kill', 'out-of-memory handler'],
  },
  {
    name: 'killed data loader',
    kind: 'host_oom',
    strength: 'exit',
    patterns: [/DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Killed/],
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
      /^\S*python[\d.]*: No module named /,
    ],
    hints: ['shared libraries', 'symbol lookup', 'No module named'],
  },
  {
    name: 'script missing',
    kind: 'python_exception',
    strength: 'program',
    patterns: [/^\S*python[\d.]*: can't open file /],
    hints: ["can't open file"],
    advice: 'Check command and workdir of the spec: the script is not there.',
  },
  {
    name: 'collective timeout',
    kind: 'nccl_timeout',
    strength: 'collective',
    patterns: [
      /Watchdog caught collective operation timeout/,
      /Received a dump signal due to a collective timeout/,
      /Timed out waiting \d+ ?ms for (?:send|recv) operation/,
    ],
    hints: ['collective operation timeout', 'collective timeout', 'Timed out waiting'],
    // Somebody was silent for as long as that; whoever complains has only waited.
    consequence: true,
    blame: 'unknown',
  },
  {
    name: 'peer lost',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      /ncclRemoteError/,
      /remote process exit/,
      /(?:gloo|ProcessGroup|NCCL|c10d|TCPStore|Socket).*[Cc]onnection (?:was )?(?:reset|closed|refused|aborted)/,
      /(?:gloo|ProcessGroup|NCCL|c10d|TCPStore|Socket).*(?:Broken pipe|Socket closed|failed to recv, got 0 bytes)/,
      /recvValue failed/,
      /Application timeout caused pair closure/,
      /DistBackendError.*(?:[Cc]onnection (?:reset|closed|refused)|Broken pipe)/,
    ],
    hints: [
      'nccl',
      'emote process',
      'onnection',
      'roken pipe',
      'ocket closed',
      'to recv',
      'recvValue',
      'pair closure',
    ],
    consequence: true,
  },
  {
    name: 'nccl misused',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [/ncclInvalidUsage/, /ncclInvalidArgument/, /Duplicate GPU detected/],
    hints: ['ncclInvalid', 'Duplicate GPU'],
    blame: 'job',
    retry: 'after_change',
    advice: 'The program uses NCCL wrongly, mostly two ranks on one GPU: choose the device by LOCAL_RANK.',
  },
  {
    name: 'nccl system error',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      /ncclSystemError/i,
      /NCCL error.*unhandled system error/i,
      /Got completion (?:from peer .*)?with (?:status|error)[ =:]+12\b/i,
    ],
    hints: ['ncclSystemError', 'unhandled system', 'ot completion'],
  },
  {
    name: 'nccl error',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      /ncclInternalError/,
      /ncclUnhandledCudaError/,
      /NCCL error.*unhandled cuda error/,
      /^torch\.distributed\.DistBackendError/,
    ],
    hints: ['ncclInternal', 'ncclUnhandled', 'unhandled cuda', 'DistBackendError'],
    blame: 'unknown',
  },
  {
    name: 'rendezvous closed',
    kind: 'rendezvous',
    strength: 'collective',
    patterns: [
      /Rendezvous(?:Connection|Closed|GracefulExit)Error/,
      /has failed to send a keep-alive heartbeat to the rendezvous/,
    ],
    hints: ['Rendezvous', 'keep-alive heartbeat'],
    consequence: true,
    atAnyLevel: true,
  },
  {
    name: 'rendezvous',
    kind: 'rendezvous',
    strength: 'collective',
    patterns: [
      /The client socket has timed out after/,
      /RendezvousTimeoutError/i,
      /Timed out after \d+ seconds waiting for clients/i,
      /server socket has failed to listen on any/i,
      /(?:EADDRINUSE|[Ee]rrno:? 98\b|code: -98).*address already in use/i,
    ],
    hints: ['client socket', 'Rendezvous', 'waiting for clients', 'server socket', 'ddress already in use'],
    atAnyLevel: true,
  },
  {
    name: 'told to stop',
    kind: 'stopped_by_signal',
    strength: 'stop',
    patterns: [
      /Received \d+ death signal/,
      /SignalException: Process \d+ got signal: \d/,
      /slurmstepd: error: \*\*\* .*CANCELLED/,
    ],
    hints: ['death signal', 'SignalException', 'CANCELLED'],
    consequence: true,
    atAnyLevel: true,
  },
  {
    // torchrun does so when it was told to stop, and when one of its workers has died.
    name: 'workers closed',
    kind: 'stopped_by_signal',
    strength: 'stop',
    patterns: [/(?:Sending process \d+ closing signal|Closing process \d+ via signal) SIG(?:TERM|INT)/],
    hints: ['closing signal', 'via signal'],
    consequence: true,
    atAnyLevel: true,
  },
];

/** It ends what the launcher runs: whatever fails after this fails because of it. */
export const stopNotice = 'told to stop';
