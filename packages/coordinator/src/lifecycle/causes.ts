/**
 * Finds the cause of the end of an attempt (G7 of docs/guarantees.md): from the ends of its tasks, from what their nodes have
 * read in the output, and from faults of their GPUs.
 */
import { causeOf } from '@muster/common/cause';
import { lossOfOutputs } from '@muster/common/gangs';
import type { CauseKind, Evidence } from '@muster/common/spec/causes';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Task } from '../model.ts';
import type { GpuFault } from './event.ts';

/** Causes in the training itself: the steps since then are of no use. */
export const divergenceCauses: readonly CauseKind[] = ['nan_loss', 'loss_divergence', 'loss_scale_exhausted'];

/** Faults of hardware that a node can find in the output of a task. */
const hardwareCauses: readonly CauseKind[] = ['gpu_fault', 'gpu_hw_ecc', 'gpu_hw_nvlink'];

const evidenceLengthMax = 500;

export function endedWell(exit: TaskEnd): boolean {
  return exit.exitCode === 0 && exit.startError === null && lossOfOutputs(exit) === null;
}

/**
 * Whether a task ended like one that was asked to stop: by the first signal or the last, or before it had begun. A task that the
 * kernel killed did not.
 */
export function endedLikeStopped(exit: TaskEnd): boolean {
  if (exit.oomKilled || exit.startError !== null) return false;
  const neverBegan = exit.exitCode === null && exit.signal === null && !exit.statusLost;
  return (
    neverBegan ||
    exit.signal === 'SIGTERM' ||
    exit.signal === 'SIGKILL' ||
    exit.exitCode === 143 ||
    exit.exitCode === 137
  );
}

/**
 * The task that failed first; the others have failed because of it. Ends that only follow from another end are ranked last.
 * Then the time of the failure decides, and unknown times are ranked last. Then the rank decides.
 * @param tasks those that have failed on their own
 */
export function rootCause(tasks: readonly Task[]): Task | null {
  const [first] = [...tasks].sort(
    (a, b) =>
      Number(isConsequence(a)) - Number(isConsequence(b)) ||
      byTime(a.failedAtMs, b.failedAtMs) ||
      a.nodeRank - b.nodeRank,
  );
  return first ?? null;
}

export function isConsequence({ exit }: Pick<Task, 'exit'>): boolean {
  return exit?.failure?.consequence ?? false;
}

/** Whether the output or the error file of the task shows a failure of its own. */
export function hasOwnFailure({ failure }: TaskEnd): boolean {
  return failure !== null && failure.source !== 'exit' && !failure.consequence;
}

function byTime(a: number | null, b: number | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a - b;
}

/**
 * The cause of the end of one task. A fault of its hardware outranks its output, and the output outranks its exit status. Without
 * either, the exit status is the cause: nothing is guessed.
 * @param task a task that has failed
 */
export function causeOfEnd(task: Task, gpuFault: GpuFault | null = null): Cause {
  const { exit, node, nodeRank } = task;
  const place = { nodeRank, node };
  if (exit === null) return causeOf('unknown', `rank ${nodeRank} on ${node} ended`, place);
  if (exit.startError !== null) return causeOfNoStart(exit.startError, task, exit.statusLost);
  const { failure } = exit;
  const where = `rank ${failure?.rank ?? nodeRank} on ${node}`;
  if (gpuFault !== null) {
    const kind = failure?.kind != null && hardwareCauses.includes(failure.kind) ? failure.kind : 'gpu_fault';
    const what = gpuFault.gpuUuid === null ? 'its node' : `its GPU ${gpuFault.gpuUuid}`;
    return causeOf(kind, `${where} lost ${what}: ${gpuFault.text}`, place, evidenceOf(exit, gpuFault.text));
  }
  // For the job, this is the loss of a node: the program has no part in it.
  if (failure?.source === 'lease') return causeOf('node_lost', `${where} was ${failure.message}`, place);
  const loss = lossOfOutputs(exit);
  if (loss !== null) {
    const message = `${where} ended with 0, and its outputs are not kept: ${loss.message}`;
    const cause = causeOf(loss.kind ?? 'artifact_store', message, place);
    return loss.blame === null ? cause : { ...cause, blame: loss.blame };
  }
  const how = howItEnded(exit);
  // The message has the exit status already.
  const isExitAlone = failure?.source === 'exit' && failure.kind !== 'unknown';
  const reported = failure === null || isExitAlone ? null : failure.message;
  const message = `${where} ${how.words}${reported === null ? '' : `: ${reported}`}`;
  if (exit.oomKilled) {
    const line = failure?.source === 'kernel' ? failure.message : how.evidence;
    return causeOf(how.kind, message, place, evidenceOf(exit, line));
  }
  const evidence = evidenceOf(exit, reported ?? how.evidence);
  if (failure?.kind == null) return causeOf(how.kind, message, place, evidence);
  const cause = causeOf(failure.kind, message, place, evidence);
  return failure.blame === null ? cause : { ...cause, blame: failure.blame };
}

interface Ending {
  readonly kind: CauseKind;
  readonly words: string;
  /** null: nothing is known but the end. */
  readonly evidence: string | null;
}

function howItEnded({ oomKilled, statusLost, signal, exitCode }: TaskEnd): Ending {
  if (oomKilled) {
    const words = 'was killed by the kernel because memory ran out';
    return { kind: 'host_oom', words, evidence: 'killed by the kernel because memory ran out' };
  }
  if (statusLost) return { kind: 'unknown', words: 'has ended with an unknown exit status', evidence: null };
  if (signal !== null) return { kind: 'exit_code', words: `was ended by ${signal}`, evidence: signal };
  return { kind: 'exit_code', words: `exited with code ${exitCode}`, evidence: `exit code ${exitCode}` };
}

function evidenceOf({ failure }: TaskEnd, text: string | null): Evidence | null {
  if (text === null) return null;
  const line = failure?.message === text ? failure.line : null;
  return { line, text: text.slice(0, evidenceLengthMax), rank: failure?.rank ?? null };
}

/** Adds rank and node to the cause of a start that failed. The cause for a lost node names both already. */
function causeOfNoStart(reported: Cause, { node, nodeRank }: Task, isLost: boolean): Cause {
  const message = isLost
    ? reported.message
    : `rank ${nodeRank} on ${node} did not start: ${reported.message}`;
  return { ...reported, message, nodeRank, node };
}
