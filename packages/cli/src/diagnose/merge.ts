/**
 * From the output of every node of an attempt, and the cause that Muster has recorded, to one diagnosis. What Muster knows
 * of (a lost node, a preemption, a time limit) stands in no output; where only an exit code is known, the output is better evidence.
 * Pure.
 */
import { adviceOn } from '@muster/common/causeText';
import { lossOfOutputs } from '@muster/common/gangs';
import type { CauseKind } from '@muster/common/spec/causes';
import type { AttemptView, Cause, TaskView } from '@muster/common/views';
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import { type FailureFinding, finding, isStronger, retryAdviceOf } from '@muster/diagnosis/failure/finding';
import type { ProcessEnd } from '@muster/diagnosis/failure/judge';
import type { Diagnosis } from '@muster/diagnosis/model';

/** Ended by Muster or at a user's request, with nothing wrong. */
const stops: ReadonlySet<CauseKind> = new Set(['stopped_by_signal', 'preempted', 'cancelled', 'time_limit']);
/** They report that the task ended, and not why. */
const vagueKinds: ReadonlySet<CauseKind> = new Set(['exit_code', 'unknown']);

interface RankDiagnosis {
  readonly nodeRank: number;
  readonly diagnosis: Diagnosis;
  readonly found: FailureFinding | null;
}

/** @param logs by node rank, read to their ends */
export function mergeRanks(logs: ReadonlyMap<number, LogDiagnosis>, attempt: AttemptView): Diagnosis {
  const ranks = [...logs]
    .map(([nodeRank, log]): RankDiagnosis => {
      const task = attempt.tasks.find((each) => each.nodeRank === nodeRank);
      const end = endOf(task);
      const diagnosis = log.result(end);
      const lost = outputsNotKept(task);
      return lost === null
        ? { nodeRank, diagnosis, found: log.finding(end) }
        : { nodeRank, diagnosis: withFound(diagnosis, lost), found: lost };
    })
    .sort((a, b) => a.nodeRank - b.nodeRank);
  const { cause } = attempt;
  const first = ranks.find((each) => cause !== null && isNamed(each, cause)) ?? foremost(ranks);
  const primary = (first ?? ranks[0])?.diagnosis ?? nothing();
  const { framework, metrics } = mostMetrics(ranks)?.diagnosis ?? primary;
  const state = stateOf(attempt);
  const merged = cause === null || attempt.state !== 'ended' ? primary : withRecorded(primary, cause);
  return { ...merged, state, framework, metrics };
}

/** Times of different nodes cannot be compared here; the recorded cause comes from where they were. */
function isNamed({ nodeRank, found }: RankDiagnosis, cause: Cause): boolean {
  return found !== null && nodeRank === cause.nodeRank && (!found.consequence || found.kind === cause.kind);
}

function endOf(task: TaskView | undefined): ProcessEnd | null {
  if (task === undefined || task.exit === null || task.exit.startError !== null) return null;
  const { exitCode, signal, oomKilled } = task.exit;
  return { exitCode, signal, oomKilled };
}

/** The output of such a task is that of one that has completed. What another task has printed of its own end counts more. */
function outputsNotKept(task: TaskView | undefined): FailureFinding | null {
  const loss = task?.exit == null ? null : lossOfOutputs(task.exit);
  if (loss === null) return null;
  const { kind, blame, consequence, message } = loss;
  return finding({
    kind: kind ?? 'artifact_store',
    strength: 'exit',
    consequence,
    evidence: { line: null, text: message, rank: null },
    ...(blame === null ? {} : { blame }),
  });
}

function withFound(diagnosis: Diagnosis, found: FailureFinding): Diagnosis {
  const { kind: cause, blame, evidence, retry, advice } = found;
  return { ...diagnosis, state: 'failed', cause, blame, evidence, retry, advice };
}

function stateOf({ state, cause }: AttemptView): Diagnosis['state'] {
  if (state !== 'ended') return 'running';
  if (cause === null) return 'completed';
  return stops.has(cause.kind) ? 'stopped' : 'failed';
}

function withRecorded(primary: Diagnosis, { kind, blame, message, evidence }: Cause): Diagnosis {
  if (primary.cause === kind) return primary;
  const isMoreSpecific =
    primary.cause !== null && primary.cause !== 'loss_spike' && !vagueKinds.has(primary.cause);
  if (vagueKinds.has(kind) && isMoreSpecific) return primary;
  return {
    ...primary,
    cause: kind,
    blame,
    evidence: evidence ?? { line: null, text: message, rank: null },
    retry: retryAdviceOf[kind],
    advice: adviceOn({ kind, message, evidence }),
  };
}

function foremost(ranks: readonly RankDiagnosis[]): RankDiagnosis | undefined {
  const failed = ranks.filter(({ found }) => found !== null);
  const beginnings = failed.filter(({ found }) => found?.consequence === false);
  const candidates = beginnings.length > 0 ? beginnings : failed;
  return candidates.reduce<RankDiagnosis | undefined>((best, each) => {
    if (best?.found === undefined || best.found === null || each.found === null) return each;
    return isStronger(each.found, best.found) ? each : best;
  }, undefined);
}

/** Programs print their metrics on one rank: the first, or with Megatron the last. */
function mostMetrics(ranks: readonly RankDiagnosis[]): RankDiagnosis | undefined {
  return ranks.reduce<RankDiagnosis | undefined>((most, each) => {
    return most !== undefined && most.diagnosis.metrics.rows >= each.diagnosis.metrics.rows ? most : each;
  }, undefined);
}

function nothing(): Diagnosis {
  return new LogDiagnosis().result();
}
