/** A job in a few words. Pure. */

import { lossOfOutputs } from '@muster/common/gangs';
import { phaseInShort } from '@muster/common/phaseText';
import { signMarks, signSummary } from '@muster/common/signText';
import { normalizeJobSpec, normalizeLabels, normalizeResources } from '@muster/common/spec/serialize';
import type { JobResources, JobSpec, JobSpecFile } from '@muster/common/spec/types';
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { AttemptView, JobView, TaskEnd } from '@muster/common/views';
import type { Style } from '../output/colours.ts';
import { count } from '../output/text.ts';
import { durationText } from '../output/times.ts';

export const stateStyles: Readonly<Record<JobStateKind, Style | null>> = {
  queued: 'yellow',
  starting: 'cyan',
  running: 'green',
  stopping: 'cyan',
  succeeded: null,
  failed: 'red',
  cancelled: 'dim',
};

/** The coordinator has checked the spec before it stored it. */
export function specOf(job: JobView): JobSpec {
  return normalizeJobSpec(job.spec);
}

/** As `specOf(job).resources`, at a fraction of its cost. */
export function resourcesOf(job: JobView): JobResources {
  const { resources = {} }: JobSpecFile = job.spec;
  return normalizeResources(resources);
}

/** As `specOf(job).labels`, also of a job of a brief list. */
export function labelsOf(job: JobView): JobSpec['labels'] {
  const { labels = {} }: JobSpecFile = job.spec;
  return normalizeLabels(labels);
}

/** `train`, or `train[3]` as part of an array. */
export function nameOf(job: JobView): string {
  return job.array === null ? job.name : `${job.name}[${job.array.index}]`;
}

/** `4 GPUs`, `2 × 4 GPUs`, `2 nodes`, or nothing for a single CPU task. */
export function needsText({ nodes, minNodes, gpus }: JobResources): string {
  const sizes = minNodes === nodes ? `${nodes}` : `${minNodes} to ${nodes}`;
  if (gpus === 0) return nodes === 1 ? '' : `${sizes} nodes`;
  return nodes === 1 ? count(gpus, 'GPU') : `${sizes} × ${count(gpus, 'GPU')}`;
}

/** `running`, or with what was noticed of its newest attempt: `succeeded (NaN)`, `running (hangs)`. */
export function markedState(job: JobView): string {
  const marks = signMarks(job);
  return marks.length === 0 ? job.state : `${job.state} (${marks.join(', ')})`;
}

/**
 * `Detached. job_… is still running.`
 * @param state when it was last seen; null: unknown
 */
export function detachedText(id: string, state: JobView['state'] | null): string {
  if (state === null) return `Detached. ${id} was not stopped.`;
  if (isTerminal(state)) return `Detached. ${id} has ended.`;
  return `Detached. ${id} is still ${state}.`;
}

/** Why it waits or why it ended; empty while there is nothing to say. */
export function whyText(job: JobView): string {
  if (job.state === 'queued' && job.pending !== null) return job.pending.message;
  if (job.cause !== null && job.state !== 'succeeded') return job.cause.message;
  const phase = job.phases === null || isTerminal(job.state) ? '' : phaseInShort(job.phases);
  return [phase, atWorkText(job), ...signSummary(job)].filter((part) => part !== '').join('; ');
}

/** What keeps the tasks of an attempt from running: frozen ones, or what their nodes are busy with. */
function atWorkText(job: JobView): string {
  if (isTerminal(job.state)) return '';
  const tasks = newestAttempt(job)?.tasks ?? [];
  const frozen = tasks.filter((task) => task.frozen);
  if (frozen.length > 0) return `frozen on ${frozen.map(({ node }) => node).join(', ')}: lease expired`;
  const busy = tasks.find(({ doing }) => doing !== null);
  return busy === undefined ? '' : `${busy.node} ${busy.doing}`;
}

/**
 * How long the newest attempt has run or did run; empty when it never did. Of an ended job with several:
 * `5 attempts (4 min 31 s)`, from the beginning of the first to the end of the last, with the waits between them.
 */
export function ranText(job: JobView, nowMs: number): string {
  const { attempts, endedAtMs } = job;
  if (endedAtMs !== null && attempts.length > 1) {
    const beganMs = Math.min(...attempts.map(({ allocatedAtMs }) => allocatedAtMs));
    return `${count(attempts.length, 'attempt')} (${durationText(endedAtMs - beganMs)})`;
  }
  const attempt = newestAttempt(job);
  if (attempt === null || attempt.runningAtMs === null) return '';
  const endMs = attempt.endedAtMs ?? endedAtMs ?? nowMs;
  return durationText(endMs - attempt.runningAtMs);
}

export function newestAttempt(job: JobView): AttemptView | null {
  return job.attempts.reduce<AttemptView | null>(
    (newest, attempt) => (newest === null || attempt.number > newest.number ? attempt : newest),
    null,
  );
}

/** `exit code 1`, `exit code 0, outputs not kept`, `SIGKILL (out of memory)`, `lost: …`, `not started`; empty while it runs. */
export function endText(end: TaskEnd | null): string {
  if (end === null) return '';
  const { startError, statusLost } = end;
  // Of a node that was lost: it may well have run there until then.
  if (statusLost) return startError === null ? 'status lost' : `lost: ${startError.message}`;
  if (startError !== null) return `not started: ${startError.message}`;
  const how = end.signal ?? (end.exitCode === null ? 'not started' : `exit code ${end.exitCode}`);
  if (lossOfOutputs(end) !== null) return `${how}, outputs not kept`;
  return end.oomKilled ? `${how} (out of memory)` : how;
}

/** One sentence about the job as it is now, for progress and results. */
export function statusText(job: JobView): string {
  const why = whyText(job);
  return `${nameOf(job)} ${job.state}${why === '' ? '' : `: ${why}`}`;
}
