/** Why is it waiting, why did it end, what now: sentences from the same data that the decisions were made on. */
import type { Cause, JobView } from '@muster/common/views';

export interface Explanation {
  readonly summary: string;
  readonly details: readonly string[];
  readonly nextSteps: readonly string[];
}

/**
 * @param ahead queued jobs that come before it
 * @param silentNodes nodes of its current attempt that do not answer
 */
export function explain(job: JobView, ahead: number, silentNodes: readonly string[]): Explanation {
  const attempts = job.attempts.filter((attempt) => attempt.cause !== null);
  const history = attempts.map(
    (attempt) => `attempt ${attempt.number} ended: ${describeCause(attempt.cause)}`,
  );
  switch (job.state) {
    case 'queued': {
      const reason = job.pending;
      return {
        summary: `${job.id} is waiting: ${reason?.message ?? 'the scheduler has not looked at it yet'}`,
        details: [`reason: ${reason?.kind ?? 'scheduling'}`, placeInQueue(ahead), ...history],
        nextSteps: [...(reason?.remedy == null ? [] : [reason.remedy]), 'see what is running: muster nodes'],
      };
    }
    case 'starting':
    case 'running': {
      const attempt = job.attempts.at(-1);
      const where =
        attempt?.tasks.map((task) => `rank ${task.nodeRank} on ${task.node}: ${task.state}`) ?? [];
      const silent = silentNodes.map(
        (node) => `node ${node} does not answer; its tasks are taken to be running until it says otherwise`,
      );
      return {
        summary: `${job.id} is ${job.state}, attempt ${attempt?.number ?? 1}`,
        details: [...where, ...silent, ...history],
        nextSteps: [`follow its output: muster logs -f ${job.id}`],
      };
    }
    case 'stopping':
      return {
        summary: `${job.id} is stopping: ${describeCause(job.cause)}`,
        details: history,
        nextSteps: ['its tasks have the grace of the spec (stop_grace) to save and exit'],
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
