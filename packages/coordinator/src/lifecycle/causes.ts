/** From how tasks ended to the cause their attempt carries. Log signatures and GPU faults will refine this. */
import type { Cause, TaskEnd } from '@muster/common/views';
import type { Task } from '../model.ts';

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

/** @param task a task that has ended badly */
export function causeOfEnd(task: Task): Cause {
  const { exit, node, nodeRank } = task;
  if (exit === null) return { kind: 'unknown', message: `rank ${nodeRank} on ${node} ended`, nodeRank, node };
  if (exit.startError !== null) return causeOfNoStart(exit.startError, task, exit.statusLost);
  const { failure } = exit;
  const where = `rank ${failure?.rank ?? nodeRank} on ${node}`;
  // To the job it is as if its node had been lost: nothing of the program is to blame.
  if (failure?.source === 'lease')
    return { kind: 'node_lost', message: `${where} was ${failure.message}`, nodeRank, node };
  // What is known from the exit alone is said already.
  const evidence = failure === null || failure.source === 'exit' ? '' : `: ${failure.message}`;
  const cause = (kind: Cause['kind'], what: string): Cause => {
    return { kind, message: `${where} ${what}${evidence}`, nodeRank, node };
  };
  if (exit.oomKilled) return cause('host_oom', 'was killed by the kernel for want of memory');
  if (exit.statusLost) return cause('unknown', 'is gone and nobody saw how it ended');
  if (exit.signal !== null) return cause('exit_code', `was ended by ${exit.signal}`);
  return cause('exit_code', `exited with code ${exit.exitCode}`);
}

/** A node takes for granted where it is; what was said of a lost one from outside names it already. */
function causeOfNoStart(said: Cause, { node, nodeRank }: Task, isLost: boolean): Cause {
  const message = isLost ? said.message : `rank ${nodeRank} on ${node} did not start: ${said.message}`;
  return { ...said, message, nodeRank, node };
}
