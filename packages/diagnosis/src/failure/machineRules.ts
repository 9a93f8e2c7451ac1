/** Of GPUs that are broken and storage that is full, broken or away. */
import type { SignatureRule } from './signature.ts';

export const machineRules: readonly SignatureRule[] = [
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
    name: 'gpu lost',
    kind: 'gpu_suspect',
    strength: 'hardware',
    patterns: [/Unable to determine the device handle for gpu ?\S{1,40}: (?:GPU is lost|Unknown Error)/i],
    hints: ['Unable to determine'],
  },
  {
    name: 'shared memory',
    kind: 'shm_exhausted',
    strength: 'storage',
    patterns: [
      /Unexpected bus error encountered in worker/,
      /is killed by signal: Bus error/,
      /Error while creating shared memory segment/,
      [/No space left on device/, /\/dev\/shm\//],
      [/\/dev\/shm\//, /No space left on device/],
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
      /(?:: |failed with )No space left on device/,
      /\(os error 28\)/,
      /kind: StorageFull/,
      /\[Errno 122\]/,
      /: Disk quota exceeded/,
      /PytorchStreamWriter failed writing file/,
      [/inline_container\.cc/, /unexpected pos \d{1,20} vs \d/],
      [/RuntimeError: File \S/, / cannot be opened/],
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
    // No kind of cause stands for it: the program reports it, and the storage is the root cause.
    name: 'storage failed',
    kind: 'python_exception',
    strength: 'storage',
    patterns: [
      /\w\(\): fd \d{1,9} failed with (?:Input\/output error|Stale file handle|Remote I\/O error)/,
      /^OSError: \[Errno (?:5|116|121)\] /,
    ],
    hints: ['Input/output error', 'Stale file handle', 'Remote I/O', 'OSError: ['],
    blame: 'storage',
    retry: 'other_node',
    advice:
      'The storage failed under it: check the file system that it wrote to or read from, and retry on another node.',
  },
  {
    name: 'corrupt checkpoint',
    kind: 'corrupt_checkpoint',
    strength: 'storage',
    patterns: [
      /PytorchStreamReader failed/,
      /SafetensorError: Error while deserializing/,
      [
        /SafetensorError: /,
        /HeaderTooLarge|InvalidHeader|MetadataIncomplete|header too large|incomplete metadata/,
      ],
      /\b_?pickle\.UnpicklingError/,
      /unexpected EOF, expected \d{1,20} more bytes\. The file might be corrupted/,
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
];
