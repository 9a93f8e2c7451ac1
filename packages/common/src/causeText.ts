/** Causes in few words, for lines that name many of them, and what to do about a single one. Pure. */
import { causeFacts } from './causeFacts.ts';
import type { CauseKind } from './spec/causes.ts';
import type { Cause } from './views.ts';

/** The rest of a longer sentence or line of output would not help a person. */
export const evidenceShownMax = 160;

/** Kinds whose name alone shows what happened. For all others the message does: it names a peer, a path or a signal. */
const titles: Readonly<Partial<Record<CauseKind, string>>> = {
  cuda_oom: 'CUDA OOM',
  cuda_illegal_access: 'illegal CUDA memory access',
  gpu_hw_ecc: 'GPU memory error (ECC)',
  gpu_hw_nvlink: 'NVLink error',
  nccl_timeout: 'NCCL timeout',
  nccl_error: 'NCCL error',
  shm_exhausted: 'out of shared memory',
  host_oom: 'out of host memory',
};

/** What titles leave open: on which rank. null: the message is shown, which names it. */
type RankWords = (rank: number) => string;

function causeWords(cause: Cause, words: RankWords): string {
  const title = titles[cause.kind];
  if (title === undefined) return shortened(cause.message);
  const rank = cause.evidence?.rank ?? cause.nodeRank;
  return rank === null ? title : `${title}${words(rank)}`;
}

/** `CUDA OOM on rank 1`, or the message, at most 160 characters. */
export function causeInShort(cause: Cause): string {
  return causeWords(cause, (rank) => ` on rank ${rank}`);
}

/** `CUDA OOM (rank 1)`, or the message, at most 160 characters. */
export function causeInBrackets(cause: Cause): string {
  return causeWords(cause, (rank) => ` (rank ${rank})`);
}

/** Of several jobs, whose ranks differ: `CUDA OOM`, or the message of one of them, at most 160 characters. */
export function causeOfMany({ kind, message }: Pick<Cause, 'kind' | 'message'>): string {
  return titles[kind] ?? shortened(message);
}

/** What a node adds in brackets to the words of a failure. */
const remarkAtEnd = / \((?:did you mean|interpreter) (?:(?! \().)+\)$/u;

/**
 * The text on one line, cut to `max` characters with `…` where it was cut: at its end, or before the remark of the node
 * (`(did you mean train.py?)`), which is what helps and is never cut.
 */
export function shortened(text: string, max = evidenceShownMax): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  const characters = Array.from(line);
  if (characters.length <= max) return line;
  const remark = remarkAtEnd.exec(line)?.[0] ?? '';
  const room = Math.max(0, max - 1 - Array.from(remark).length);
  return `${characters.slice(0, room).join('')}…${remark}`;
}

/** `message` with a remark behind it in brackets, at most `max` characters: what does not fit is cut from the message. */
export function appendRemark(message: string, remark: string, max: number): string {
  return shortened(`${message} (${remark})`, max);
}

const ofSignals: Readonly<Record<string, string>> = {
  SIGKILL:
    'SIGKILL comes from outside of the program: mostly the kernel when memory runs out (dmesg on the node; ask for more with ' +
    'resources.memory_mb), or a kill -9.',
  SIGSEGV:
    'A segmentation fault happens in native code: set PYTHONFAULTHANDLER=1 in env to see the Python line that led there, and ' +
    'check that extensions were built for this PyTorch and CUDA.',
  SIGBUS:
    'A bus error is mostly full shared memory or a file that shrank while it was mapped: raise resources.shm_mb, or check the storage.',
  SIGABRT:
    'The program aborted, mostly in native code: the last lines of its output name the assertion (muster logs).',
};

/** What a job ran in. */
export interface Surroundings {
  /** null: it ran as a process of the agent. */
  readonly image: string | null;
  /** The venv or conda environment that came with the job; null: none did. */
  readonly environment: string | null;
}

function onMissingModule({ image, environment }: Surroundings): string {
  const again = 'a retry fails in the same way.';
  if (image !== null)
    return `Add the missing module, or one built for this version of PyTorch and CUDA, to the image ${image}; ${again}`;
  if (environment !== null)
    return `Install the missing module into ${environment}, and check that every node has it at this path; ${again}`;
  return (
    'The job ran as a process with the PATH of the agent: activate your venv or conda environment before muster submit, ' +
    `which sends it along, or set PATH in env; ${again}`
  );
}

/**
 * One or two sentences that name the remedy. They are about the single case where its message or evidence names a signal, and
 * about what the job ran in.
 * @param ranIn absent: not known
 */
export function adviceOn(cause: Pick<Cause, 'kind' | 'message' | 'evidence'>, ranIn?: Surroundings): string {
  if (cause.kind === 'import_error' && ranIn !== undefined) return onMissingModule(ranIn);
  if (cause.kind === 'python_exception' && /can't open file/.test(cause.message)) {
    const meant = /\(did you mean ([^()]+)\?\)$/u.exec(cause.message)?.[1];
    const question = meant === undefined ? '' : `Did you mean ${meant}? `;
    return `${question}The script is not there: correct its name, or the working directory (workdir in the spec).`;
  }
  if ((cause.kind === 'unknown' || cause.kind === 'exit_code') && didNotStart(cause))
    return 'Its node refused to start it: follow the remedy in the message, then run it again.';
  if (cause.kind === 'exit_code' || cause.kind === 'unknown') {
    const signal = /\bSIG(?:KILL|SEGV|BUS|ABRT)\b/u.exec(
      `${cause.message} ${cause.evidence?.text ?? ''}`,
    )?.[0];
    // Where it never ran, the signal is not its own.
    const advice = signal === undefined ? undefined : ofSignals[signal];
    if (advice !== undefined) return advice;
  }
  return causeFacts[cause.kind].advice;
}

/** The task that ended the job never ran, so it has no output. */
export function didNotStart({ message }: Pick<Cause, 'message'>): boolean {
  return message.includes(' did not start: ');
}
