/** Jobs as the event log tells of them, for the checks that follow one through its attempts. */
import type { CauseKind } from '@muster/common/spec/causes';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';

export interface AttemptStory {
  readonly number: number;
  readonly nodes: readonly string[];
  readonly resumeStep: number | null;
  isReleased: boolean;
  /** Why it was ordered to stop. */
  stopCause: Cause | null;
  /** The user has asked for another one meanwhile. */
  isRequeued: boolean;
  /** Why its nodes could not start tasks of it. */
  readonly startErrors: CauseKind[];
}

export interface JobStory {
  readonly id: string;
  readonly file: JobSpecFile | undefined;
  /** null: none is there. */
  attempt: AttemptStory | null;
  last: AttemptStory | null;
}

export class JobStories {
  private readonly stories = new Map<string, JobStory>();
  private readonly fileOf: (jobName: string) => JobSpecFile | undefined;

  constructor(fileOf: JobStories['fileOf']) {
    this.fileOf = fileOf;
  }

  of(jobId: string): JobStory | undefined {
    return this.stories.get(jobId);
  }

  /** To be called with an event before it is judged by. @returns null: it is none of a job */
  follow({ kind, subject, data }: StoredEvent): JobStory | null {
    if (!subject.startsWith('job_')) return null;
    const story = this.stories.get(subject) ?? {
      id: subject,
      file: this.fileOf(String(data['name'])),
      attempt: null,
      last: null,
    };
    this.stories.set(subject, story);
    const { attempt } = story;
    if (kind === 'attempt.allocated') {
      const { tasks, resume } = data as { tasks: { node: string }[]; resume: { step: number } | null };
      story.attempt = {
        number: Number(data['attempt']),
        nodes: tasks.map(({ node }) => node),
        resumeStep: resume?.step ?? null,
        isReleased: false,
        stopCause: null,
        isRequeued: false,
        startErrors: [],
      };
      story.last = story.attempt;
    } else if (kind === 'attempt.ended') story.attempt = null;
    else if (attempt === null) return story;
    else if (kind === 'attempt.released') attempt.isReleased = true;
    else if (kind === 'job.requeued') attempt.isRequeued = true;
    else if (kind === 'task.ended') {
      const { startError, statusLost } = data['exit'] as Partial<TaskEnd>;
      if (startError != null && statusLost !== true) attempt.startErrors.push(startError.kind);
    } else if (kind === 'job.stopping') {
      attempt.stopCause = data['cause'] as Cause | null;
      if (isByUser(attempt.stopCause)) attempt.isRequeued = true;
    }
    return story;
  }
}

function isByUser(cause: Cause | null): boolean {
  return cause?.kind === 'preempted' && cause.message.startsWith('requeued by a user');
}

/** What its attempt has saved is further than where it began. */
export function isProgress({ attempt }: JobStory, { kind, data }: StoredEvent): boolean {
  if (kind !== 'checkpoint.saved' || attempt?.isReleased !== true) return false;
  return attempt.number === data['attempt'] && Number(data['step']) > (attempt.resumeStep ?? -1);
}
