/** Why is it waiting, why did it end, what now: sentences from the same data that the decisions were made on. */
import { causeFacts } from '@muster/common/causeFacts';
import type { AttemptView, Cause, JobView, Resume, TaskView } from '@muster/common/views';
import { describeSilence, type SilentNode, silenceRemedy } from './silence.ts';

export interface Explanation {
  readonly summary: string;
  readonly details: readonly string[];
  readonly nextSteps: readonly string[];
}

/**
 * @param ahead queued jobs that come before it
 * @param silentNodes nodes of its current attempt that do not answer
 * @param paused why nothing is rescheduled at the moment; null: it is
 * @param resume what its next attempt would begin from, were it placed where that is; null: from nothing. Left out:
 *   nobody asked
 */
export function explain(
  job: JobView,
  ahead: number,
  silentNodes: readonly SilentNode[],
  paused: string | null = null,
  resume?: Resume | null,
): Explanation {
  const silent = silentNodes.map((each) => describeSilence(each, paused !== null));
  if (paused !== null && silent.length > 0) silent.push(`nothing is rescheduled now: ${paused}`);
  const remedies = silentNodes.map(silenceRemedy);
  const history = job.attempts.flatMap(describeEnd);
  const work = [...preemptionsOf(job), ...checkpointsOf(job)];
  switch (job.state) {
    case 'queued': {
      const reason = job.pending;
      return {
        summary: `${job.id} is waiting: ${reason?.message ?? 'the scheduler has not looked at it yet'}`,
        details: [
          `reason: ${reason?.kind ?? 'scheduling'}`,
          placeInQueue(ahead),
          ...leftOutOf(job),
          ...nextAttemptOf(job, resume),
          ...work,
          ...history,
        ],
        nextSteps: [...(reason?.remedy == null ? [] : [reason.remedy]), 'see what is running: muster nodes'],
      };
    }
    case 'starting':
    case 'running': {
      const attempt = job.attempts.at(-1);
      const where = attempt?.tasks.map(describeTask) ?? [];
      return {
        summary: `${job.id} is ${job.state}, attempt ${attempt?.number ?? 1}`,
        details: [
          ...where,
          ...sizeOf(job, attempt),
          ...beginningOf(attempt),
          ...scalesOf(job),
          ...silent,
          ...work,
          ...history,
        ],
        nextSteps: [...remedies, `follow its output: muster logs -f ${job.id}`],
      };
    }
    case 'stopping':
      return {
        summary: `${job.id} is stopping: ${describeCause(job.cause)}`,
        details: [...silent, ...work, ...history],
        nextSteps: [...remedies, 'its tasks have the grace of the spec (stop_grace) to save and exit'],
      };
    case 'succeeded':
      return {
        summary: `${job.id} succeeded`,
        details: history,
        nextSteps: [`its output: muster logs ${job.id}`],
      };
    case 'failed':
    case 'cancelled':
      return {
        summary: `${job.id} ${job.state === 'failed' ? 'failed' : 'was cancelled'}: ${describeCause(job.cause)}`,
        details: [`cause: ${job.cause?.kind ?? 'unknown'}`, ...evidenceOf(job.cause), ...work, ...history],
        nextSteps: [
          `its last output: muster logs --tail 50 ${job.id}`,
          ...(job.cause === null ? [] : [causeFacts[job.cause.kind].advice]),
          `run it again: muster requeue ${job.id}`,
        ],
      };
    default: {
      const never: never = job.state;
      return never;
    }
  }
}

/** `rank 1 on node-2: assigned, pulling the image` */
function describeTask({ nodeRank, node, state, doing, frozen }: TaskView): string {
  const frozenText = frozen ? ', frozen until there is word from the coordinator again' : '';
  return `rank ${nodeRank} on ${node}: ${state}${doing === null ? '' : `, ${doing}`}${frozenText}`;
}

/** Of a job that takes a range of nodes: how many it has. */
function sizeOf({ spec }: JobView, attempt: AttemptView | undefined): readonly string[] {
  const nodes = mappingOf(mappingOf(spec)['resources'])['nodes'];
  const { min, max } = mappingOf(nodes);
  if (attempt === undefined || typeof min !== 'number' || typeof max !== 'number') return [];
  return [`it has ${attempt.tasks.length} nodes of the ${min} to ${max} that it can use`];
}

function mappingOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function leftOutOf({ leftOut }: JobView): readonly string[] {
  return leftOut.map(
    ({ node, cause }) => `${node} is left out as long as other nodes could take it: ${cause.message}`,
  );
}

function placeInQueue(ahead: number): string {
  if (ahead === 0) return 'nothing is ahead of it in the queue';
  return ahead === 1 ? '1 queued job comes before it' : `${ahead} queued jobs come before it`;
}

function describeCause(cause: Cause | null): string {
  return cause === null ? 'for a reason that nobody recorded' : cause.message;
}

/** `attempt 2 ended: rank 1 on node-2 ran out of GPU memory` */
function describeEnd({ number, cause }: AttemptView): readonly string[] {
  if (cause === null) return [];
  return [`attempt ${number} ended: ${describeCause(cause)}`, ...evidenceOf(cause)];
}

/** `line 1042 of rank 3: torch.OutOfMemoryError: …` */
function evidenceOf(cause: Cause | null): readonly string[] {
  if (cause?.evidence == null) return [];
  const { line, rank, text } = cause.evidence;
  const where = [...(line === null ? [] : [`line ${line}`]), ...(rank === null ? [] : [`rank ${rank}`])];
  const blame = cause.blame === 'unknown' ? '' : ` (to blame: ${cause.blame})`;
  return [`evidence${where.length === 0 ? '' : `, ${where.join(' of ')}`}: ${text}${blame}`];
}

function describeCheckpoint({ name, step }: Resume): string {
  return step === null ? name : `${name} (step ${step})`;
}

/** What the running attempt began from. */
function beginningOf(attempt: AttemptView | undefined): readonly string[] {
  if (attempt === undefined || attempt.resume === null) return [];
  return [`it began from ${describeCheckpoint(attempt.resume)}`];
}

function nextAttemptOf(job: JobView, resume: Resume | null | undefined): readonly string[] {
  // Of the first one there is nothing to tell.
  if (job.attempts.length === 0) return scalesOf(job);
  if (resume === undefined) return scalesOf(job);
  const from = resume === null ? 'begins anew' : `begins from ${describeCheckpoint(resume)}`;
  return [`its next attempt ${from}`, ...scalesOf(job)];
}

/** What recovery has changed of how the user wrote it. */
function scalesOf({ batchScale, lrScale, attempts }: JobView): readonly string[] {
  const after = (kinds: readonly string[]) => {
    const cause = attempts.findLast(
      (attempt) => attempt.cause !== null && kinds.includes(attempt.cause.kind),
    )?.cause;
    return cause == null ? '' : ` after ${cause.kind}`;
  };
  return [
    ...(batchScale === 1 ? [] : [`batch scale ${shortNumber(batchScale)}${after(['cuda_oom'])}`]),
    ...(lrScale === 1 ? [] : [`learning rate scale ${shortNumber(lrScale)}${after(divergences)}`]),
  ];
}

const divergences = ['nan_loss', 'loss_divergence', 'loss_scale_exhausted'];

/** Products of factors such as 0.1 are a hair off. */
function shortNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}

function preemptionsOf({ preemptions, spec }: JobView): readonly string[] {
  if (preemptions === 0) return [];
  const most = mappingOf(mappingOf(spec)['retry'])['max_preemptions'];
  const times = preemptions === 1 ? 'once' : `${preemptions} times`;
  const limit = typeof most === 'number' ? `, of at most ${most} (retry.max_preemptions)` : '';
  return [`it has given way ${times}${limit}`];
}

/** The newest that can be used, and what cannot. */
function checkpointsOf({ checkpoints }: JobView): readonly string[] {
  const good = checkpoints.findLast(({ verdict, suspect }) => verdict === 'verified' && !suspect);
  const bad = checkpoints.filter(({ verdict, suspect }) => verdict === 'corrupt' || suspect);
  const where = good === undefined || good.shared ? '' : `, on ${good.node} only`;
  return [
    ...(good === undefined ? [] : [`newest good checkpoint: ${describeCheckpoint(good)}${where}`]),
    ...bad.map((each) =>
      each.verdict === 'corrupt'
        ? `${describeCheckpoint(each)} is corrupt${each.problem === null ? '' : `: ${each.problem}`}`
        : `${describeCheckpoint(each)} is suspect: attempts that began from it died in the same way, so it is not used`,
    ),
  ];
}
