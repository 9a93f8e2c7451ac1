/** From how tasks ended, what their nodes read in their output, and faults of their GPUs to the cause their attempt carries. */
import { causeOf } from '@muster/common/cause';
import type { CauseKind, Evidence } from '@muster/common/spec/causes';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Task } from '../model.ts';
import type { GpuFault } from './event.ts';

/** The training itself went wrong: what was done since is of no use. */
export const divergenceCauses: readonly CauseKind[] = ['nan_loss', 'loss_divergence', 'loss_scale_exhausted'];

/** What a node can say of its own hardware from the output of a task. */
const hardwareCauses: readonly CauseKind[] = ['gpu_fault', 'gpu_hw_ecc', 'gpu_hw_nvlink'];

const evidenceLengthMax = 500;

/** The end of a task that was never released: nothing ran, nothing is left. */
export const neverStartedEnd: TaskEnd = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: false,
  startError: null,
  logBytes: 0,
  gpuUsage: null,
  failure: null,
  training: null,
};

export function endedWell(exit: TaskEnd): boolean {
  return exit.exitCode === 0 && exit.startError === null;
}

/**
 * It ended as one does that is told to stop: by the first signal or the last, or before it had begun. Not so when the kernel
 * took it.
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
 * The task that failed first, the others having failed because of it. An end that says of itself that it only follows
 * from another's comes after those that do not; then time decides, by which one nobody can place comes last; then rank.
 * @param tasks which have ended badly by themselves
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

/** Its output or error file tells of something that went wrong there by itself. */
export function tellsOfOwnFailure({ failure }: TaskEnd): boolean {
  return failure !== null && failure.source !== 'exit' && !failure.consequence;
}

function byTime(a: number | null, b: number | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a - b;
}

/**
 * Proof outranks what the output says, and what the output says outranks the exit. Where there is nothing of that, the exit
 * is all that is known: never a guess.
 * @param task a task that has ended badly
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
  // To the job it is as if its node had been lost: nothing of the program is to blame.
  if (failure?.source === 'lease') return causeOf('node_lost', `${where} was ${failure.message}`, place);
  const how = howItEnded(exit);
  // What is known from the exit alone is said already.
  const isExitAlone = failure?.source === 'exit' && failure.kind !== 'unknown';
  const said = failure === null || isExitAlone ? null : failure.message;
  const message = `${where} ${how.words}${said === null ? '' : `: ${said}`}`;
  if (exit.oomKilled) {
    const line = failure?.source === 'kernel' ? failure.message : how.evidence;
    return causeOf(how.kind, message, place, evidenceOf(exit, line));
  }
  const evidence = evidenceOf(exit, said ?? how.evidence);
  if (failure?.kind == null) return causeOf(how.kind, message, place, evidence);
  const cause = causeOf(failure.kind, message, place, evidence);
  return failure.blame === null ? cause : { ...cause, blame: failure.blame };
}

interface Ending {
  readonly kind: CauseKind;
  readonly words: string;
  /** null: that it is over is all there is. */
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

/** A node takes for granted where it is; what was said of a lost one from outside names it already. */
function causeOfNoStart(said: Cause, { node, nodeRank }: Task, isLost: boolean): Cause {
  const message = isLost ? said.message : `rank ${nodeRank} on ${node} did not start: ${said.message}`;
  return { ...said, message, nodeRank, node };
}
