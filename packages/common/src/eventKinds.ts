/**
 * Every kind of event: what its subject is, when it is emitted, and the members of its data. What emits an event is typed by this
 * table, and `docs/events.md` is generated from it. Kinds and members are part of the API: they never change their meaning.
 */
import type { JobId, NodeName } from './ids.ts';
import type { TrainingSignKind } from './training.ts';

interface EventRule {
  /** The subject of an event about output is its job, or `cluster` once the job has ended. */
  readonly subject: 'job' | 'output' | 'node' | 'cluster';
  /** One clause for people, in Markdown. */
  readonly when: string;
  /** Members of the data. `?` marks one that may be absent. Events of jobs have `name` besides. */
  readonly data: readonly string[];
}

const checkpointData = [
  'attempt',
  'checkpoint',
  'step',
  'node',
  'problem',
  'verdict',
  'bytes?',
  'saveDurationMs?',
  'metrics?',
  'diverged?',
] as const;
const signData = ['attempt', 'nodeRank', 'node', 'rank', 'step', 'lastGoodStep', 'line', 'text'] as const;
const conditionData = ['kind', 'gpuUuid', 'severity', 'action', 'message', 'evidence', 'task'] as const;
const sweepData = ['sweep', 'name', 'user', 'project'] as const;
const alertData = [
  'alert',
  'owner',
  'episode',
  'of',
  'kind',
  'name',
  'project',
  'severity',
  'message',
  'labels',
  'firedAtMs',
  'silenced',
] as const;
const restoreData = ['takenAtMs', 'atMs', 'lostEvents', 'lostJobs', 'attemptsFrom'] as const;

export const eventKinds = {
  'job.submitted': {
    subject: 'job',
    when: 'a submit was accepted',
    data: ['project', 'arrayId?', 'arrayIndex?', 'requeuedFrom?', 'resumedFrom?'],
  },
  'job.queued': {
    subject: 'job',
    when: 'an attempt ended, and the job waits for the next',
    data: ['cause', 'backoffMs', 'batchScale', 'lrScale'],
  },
  'job.circuit_open': {
    subject: 'job',
    when: 'too many failures in a row: retries are paused',
    data: ['cause', 'failuresInRow', 'pauseMs'],
  },
  'job.preempted': {
    subject: 'job',
    when: 'a job of higher priority (`by`) or a drain takes its GPUs',
    data: ['attempt', 'by', 'message'],
  },
  'job.requeued': { subject: 'job', when: 'a user requeued it', data: ['from'] },
  'job.extended': { subject: 'job', when: 'it was given more time', data: ['byMs', 'extraRuntimeMs'] },
  'job.stopping': {
    subject: 'job',
    when: 'its tasks were told to stop; `next` is the state that follows',
    data: ['attempt', 'next', 'cause'],
  },
  'job.succeeded': { subject: 'job', when: 'it has ended well', data: [] },
  'job.failed': { subject: 'job', when: 'it has failed, and is not retried', data: ['cause'] },
  'job.cancelled': { subject: 'job', when: 'it was stopped by a user or a rule', data: ['cause'] },
  'attempt.allocated': {
    subject: 'job',
    when: 'nodes and GPUs were chosen; `resume` is the checkpoint that it is offered',
    data: ['attempt', 'tasks', 'resume'],
  },
  'attempt.checked': {
    subject: 'job',
    when: 'the paths between its nodes were tested',
    data: ['attempt', 'round', 'addresses', 'paths'],
  },
  'preflight.measured': {
    subject: 'job',
    when: 'the paths were measured',
    data: ['attempt', 'backend', 'pairs', 'allReduceBytesPerS'],
  },
  'attempt.released': {
    subject: 'job',
    when: 'every task is checked, and all may start',
    data: ['attempt', 'masterAddr', 'masterPort', 'addresses?'],
  },
  'attempt.running': { subject: 'job', when: 'every task runs', data: ['attempt'] },
  'attempt.hung': {
    subject: 'job',
    when: 'no progress, and idle GPUs',
    data: ['attempt', 'nodeRank', 'node', 'rank', 'quietForMs', 'usualMs', 'gpus'],
  },
  'attempt.ended': {
    subject: 'job',
    when: 'all of its tasks have ended',
    data: ['attempt', 'cause', 'tasks', 'gpuUsage', 'endedAtMs'],
  },
  'task.ended': { subject: 'job', when: 'one task has ended', data: ['attempt', 'nodeRank', 'node', 'exit'] },
  'task.frozen': { subject: 'job', when: 'its lease has expired', data: ['attempt', 'nodeRank', 'node'] },
  'task.thawed': {
    subject: 'job',
    when: 'its lease was renewed after it had expired',
    data: ['attempt', 'nodeRank', 'node'],
  },
  'checkpoint.saved': { subject: 'job', when: 'a checkpoint is complete and verified', data: checkpointData },
  'checkpoint.seen': {
    subject: 'job',
    when: 'a checkpoint is complete and cannot be verified',
    data: checkpointData,
  },
  'checkpoint.corrupt': { subject: 'job', when: 'a checkpoint is damaged', data: checkpointData },
  'checkpoint.gone': { subject: 'job', when: 'a checkpoint was deleted', data: checkpointData },
  'checkpoint.suspect': {
    subject: 'job',
    when: 'two attempts that resumed from it failed in the same way',
    data: ['attempt', 'checkpoint', 'step', 'node', 'problem'],
  },
  'training.nan_loss': { subject: 'job', when: 'the loss is not a finite number', data: signData },
  'training.loss_divergence': { subject: 'job', when: 'the loss diverges', data: signData },
  'training.loss_spike': { subject: 'job', when: 'the loss has a spike', data: signData },
  'training.loss_scale_exhausted': {
    subject: 'job',
    when: 'the loss scale of mixed precision has reached its minimum',
    data: signData,
  },
  'training.resume_confirmed': {
    subject: 'job',
    when: 'the first steps of the output show that the program has loaded the checkpoint that it was offered; `step` is the first one',
    data: signData,
  },
  'training.resume_ignored': {
    subject: 'job',
    when: 'the first steps of the output show that the program has not loaded the checkpoint that it was offered',
    data: signData,
  },
  'training.started': {
    subject: 'job',
    when: 'the output of the attempt shows its first training step, printed at `atMs`',
    data: ['attempt', 'nodeRank', 'node', 'step', 'atMs'],
  },
  'training.complete': {
    subject: 'job',
    when: 'the program left `training_complete.marker`',
    data: ['attempt', 'nodeRank', 'node'],
  },
  'training.stats': {
    subject: 'job',
    when: 'every half minute while it runs; not stored. `text` says it in words, the others are of its GPUs together',
    data: ['attempt', 'text', 'memoryUsedMb', 'memoryTotalMb', 'utilization', 'samplesPerSecond'],
  },
  'log.truncated': {
    subject: 'output',
    when: 'a part of the output of a task was dropped for the first time',
    data: ['job', 'attempt', 'nodeRank', 'reason'],
  },
  'log.throttled': {
    subject: 'output',
    when: 'a task is held back for the first time because it writes too fast',
    data: ['job', 'attempt', 'nodeRank'],
  },
  'log.removed': {
    subject: 'output',
    when: 'the stored output of a job was deleted',
    data: ['job', 'bytes', 'reason'],
  },
  'node.joined': { subject: 'node', when: 'its first connection', data: ['inventory'] },
  'node.online': { subject: 'node', when: 'its agent connected', data: ['bootId'] },
  'node.silent': { subject: 'node', when: 'no heartbeat for three intervals', data: [] },
  'node.fenced': {
    subject: 'node',
    when: 'its tasks no longer run for certain',
    data: ['silentForMs', 'tasks'],
  },
  'node.confirmed_dead': {
    subject: 'node',
    when: 'a user or the fence command confirmed that it is dead',
    data: ['by', 'tasks'],
  },
  'node.changed': { subject: 'node', when: 'its hardware changed', data: ['changes', 'gpus'] },
  'condition.raised': { subject: 'node', when: 'it has a new condition', data: conditionData },
  'condition.changed': {
    subject: 'node',
    when: 'the severity, action or message of a condition changed',
    data: conditionData,
  },
  'condition.cleared': { subject: 'node', when: 'a condition no longer holds', data: conditionData },
  'node.clear_asked': { subject: 'node', when: 'a user cleared a condition', data: ['kind', 'gpuUuid'] },
  'node.drained': {
    subject: 'node',
    when: 'it gets no new work, by a user or because its machine shuts down',
    data: ['reason', 'deadlineMs'],
  },
  'node.undrained': { subject: 'node', when: 'its drain ended', data: [] },
  'node.orphans_ended': {
    subject: 'node',
    when: 'a user ended tasks that the store does not know',
    data: ['count', 'tasks'],
  },
  'node.removed': { subject: 'node', when: 'a user removed it', data: [] },
  'cluster.suspect': {
    subject: 'cluster',
    when: 'many nodes became silent together, so nothing is fenced',
    data: ['silentNodes', 'nodes', 'names'],
  },
  'cluster.trusted': {
    subject: 'cluster',
    when: 'that has ended',
    data: ['silentNodes', 'nodes', 'names'],
  },
  'cluster.maintenance': {
    subject: 'cluster',
    when: 'a maintenance began or ended (0)',
    data: ['forMs', 'by'],
  },
  'store.restored': { subject: 'cluster', when: 'the store was restored from a backup', data: restoreData },
  'store.accepted': {
    subject: 'cluster',
    when: 'a store that had lost commits was accepted',
    data: restoreData,
  },
  'store.advanced': {
    subject: 'cluster',
    when: 'attempts that the store did not know were passed over',
    data: ['term', 'by', 'attempts', 'nodes', 'strays'],
  },
  'alert.created': {
    subject: 'cluster',
    when: 'a user has set an alert',
    data: ['alert', 'owner', 'severity', 'condition', 'scope'],
  },
  'alert.deleted': { subject: 'cluster', when: 'an alert was deleted', data: ['alert', 'owner'] },
  'alert.firing': {
    subject: 'cluster',
    when: 'the condition of an alert began to hold for `of`, which is a job, a node or `cluster`; nobody is notified if it is `silenced`',
    data: alertData,
  },
  'alert.repeated': {
    subject: 'cluster',
    when: 'it still holds after the time of `repeat`, or after a silence, and people are notified again',
    data: alertData,
  },
  'alert.resolved': {
    subject: 'cluster',
    when: 'it no longer holds; `silenced` means that nobody was notified of the firing',
    data: [...alertData, 'reason'],
  },
  'alert.acknowledged': {
    subject: 'cluster',
    when: 'a user has acknowledged a firing, and it is not repeated',
    data: ['alert', 'owner', 'episode', 'of', 'by'],
  },
  'alert.silenced': {
    subject: 'cluster',
    when: 'an alert notifies nobody until `untilMs`; 0 ends the silence',
    data: ['alert', 'owner', 'untilMs', 'by', 'reason'],
  },
  'sweep.created': {
    subject: 'cluster',
    when: 'a user has started a sweep; its trials are jobs with the label `muster.sweep`',
    data: [...sweepData, 'sampler', 'trials'],
  },
  'sweep.trial_ended': {
    subject: 'cluster',
    when: 'a trial has ended, with its `value` if it has one',
    data: [...sweepData, 'trial', 'jobId', 'state', 'value', 'step', 'cause'],
  },
  'sweep.stopped': {
    subject: 'cluster',
    when: 'a user has stopped a sweep, and its trials are stopped',
    data: [...sweepData, 'reason'],
  },
  'sweep.extended': {
    subject: 'cluster',
    when: 'a user has given a sweep more trials; it has `trials` in all',
    data: [...sweepData, 'trials'],
  },
  'sweep.ended': {
    subject: 'cluster',
    when: 'a sweep is `done`, `stopped` or `failed`, and none of its trials runs; `best` is the number of its best trial',
    data: [...sweepData, 'state', 'reason', 'best', 'value'],
  },
  'project.changed': {
    subject: 'cluster',
    when: 'an admin has made a project private, or open again',
    data: ['project', 'isPrivate'],
  },
  'secret.set': {
    subject: 'cluster',
    when: 'a secret of `project` was stored, or got another value (`replaced`)',
    data: ['project', 'name', 'replaced'],
  },
  'secret.removed': { subject: 'cluster', when: 'a secret was removed', data: ['project', 'name'] },
  'secret.key_rotated': {
    subject: 'cluster',
    when: 'so many `secrets` were encrypted again, with a new key',
    data: ['secrets'],
  },
  'token.created': { subject: 'cluster', when: 'a join token was made', data: ['id', 'node', 'replaces'] },
  'token.joined': {
    subject: 'cluster',
    when: 'the join token `token` was used; `replaced` is the credential that ended with it',
    data: ['id', 'node', 'token', 'replaced?'],
  },
  'token.expired': { subject: 'cluster', when: 'a credential has expired', data: ['id', 'node?', 'user?'] },
  'token.issued': {
    subject: 'cluster',
    when: 'a user got a token: by `login`, by `id_token` of an issuer, by `create`, or by `rotate` in the place of `replaced`',
    data: ['id', 'user', 'label', 'by', 'replaced?'],
  },
  'token.renewed': {
    subject: 'cluster',
    when: 'an agent has renewed its credential',
    data: ['id', 'node'],
  },
  'token.revoked': { subject: 'cluster', when: 'a credential was revoked', data: ['id', 'node?', 'user?'] },
  'token.rotated': { subject: 'cluster', when: 'the admin token was replaced', data: ['id'] },
  'user.added': { subject: 'cluster', when: 'a user was added', data: ['user', 'role', 'projects'] },
  'user.changed': {
    subject: 'cluster',
    when: 'a user got another role, or other projects',
    data: ['user', 'role', 'projects'],
  },
  'user.code_created': { subject: 'cluster', when: 'a login code for a user was made', data: ['id', 'user'] },
  'user.removed': {
    subject: 'cluster',
    when: 'a user was removed, and all their tokens with them',
    data: ['user'],
  },
} as const satisfies Readonly<Record<string, EventRule>> &
  Readonly<Record<`training.${TrainingSignKind}`, EventRule>>;

export type EventKind = keyof typeof eventKinds;

type Rules = typeof eventKinds;
type KindOf<Subject extends EventRule['subject']> = {
  [K in EventKind]: Rules[K]['subject'] extends Subject ? K : never;
}[EventKind];

/** Kinds whose data begin with the name of their job. */
export type JobEventKind = KindOf<'job'>;

/** Kinds about one attempt of a job. */
export type AttemptEventKind = {
  [K in JobEventKind]: 'attempt' extends Rules[K]['data'][number] ? K : never;
}[JobEventKind];

/** The subject of events that are about the cluster and not about a job or a node. */
export const clusterSubject = 'cluster';

type Subjects = {
  readonly job: JobId;
  readonly output: JobId | typeof clusterSubject;
  readonly node: NodeName;
  readonly cluster: typeof clusterSubject;
};

type Always<Member extends string> = Member extends `${string}?` ? never : Member;
type Sometimes<Member extends string> = Member extends `${infer Name}?` ? Name : never;

/** The data of one kind without the name of its job. */
export type EventData<K extends EventKind> = K extends EventKind
  ? { readonly [Name in Always<Rules[K]['data'][number]>]: unknown } & {
      readonly [Name in Sometimes<Rules[K]['data'][number]>]?: unknown;
    }
  : never;

type EventOf<K extends EventKind> = K extends EventKind
  ? {
      readonly kind: K;
      readonly subject: Subjects[Rules[K]['subject']];
      readonly data: EventData<K> & (K extends JobEventKind ? { readonly name: unknown } : unknown);
    }
  : never;

/** A fact to be stored and published with the change that it describes. */
export type NewEvent = EventOf<EventKind>;
