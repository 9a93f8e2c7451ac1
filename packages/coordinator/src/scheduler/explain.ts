/** Why is it waiting, why did it end, what now: sentences from the same data that the decisions were made on. */
import type { AttemptView, Cause, JobView, TaskView } from '@muster/common/views';
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
 */
export function explain(
  job: JobView,
  ahead: number,
  silentNodes: readonly SilentNode[],
  paused: string | null = null,
): Explanation {
  const silent = silentNodes.map((each) => describeSilence(each, paused !== null));
  if (paused !== null && silent.length > 0) silent.push(`nothing is rescheduled now: ${paused}`);
  const remedies = silentNodes.map(silenceRemedy);
  const attempts = job.attempts.filter((attempt) => attempt.cause !== null);
  const history = attempts.map(
    (attempt) => `attempt ${attempt.number} ended: ${describeCause(attempt.cause)}`,
  );
  switch (job.state) {
    case 'queued': {
      const reason = job.pending;
      return {
        summary: `${job.id} is waiting: ${reason?.message ?? 'the scheduler has not looked at it yet'}`,
        details: [
          `reason: ${reason?.kind ?? 'scheduling'}`,
          placeInQueue(ahead),
          ...leftOutOf(job),
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
        details: [...where, ...sizeOf(job, attempt), ...silent, ...history],
        nextSteps: [...remedies, `follow its output: muster logs -f ${job.id}`],
      };
    }
    case 'stopping':
      return {
        summary: `${job.id} is stopping: ${describeCause(job.cause)}`,
        details: [...silent, ...history],
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
        details: [`cause: ${job.cause?.kind ?? 'unknown'}`, ...history],
        nextSteps: [
          `its last output: muster logs --tail 50 ${job.id}`,
          ...adviceFor(job.cause),
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

function adviceFor(cause: Cause | null): readonly string[] {
  switch (cause?.kind) {
    case 'command_not_found':
      return ['check `command` and `workdir` of the spec, and that the program is installed on every node'];
    case 'image_pull':
      return ['check the name of the image, and that the node may pull it'];
    case 'host_oom':
      return ['ask for more memory (resources.memory_mb), or use less'];
    case 'time_limit':
      return ['allow more time: max_runtime in the spec'];
    default:
      return [];
  }
}
