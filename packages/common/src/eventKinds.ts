/**
 * Every kind of event: what its subject is, when it is emitted, and the members of its data. What emits an event is typed by this
 * table, and `docs/events.md` is generated from it. Kinds and members are part of the API: they never change their meaning.
 */
import * as clockShapes from './eventClockShapes.ts';
import { identityData } from './eventIdentityShapes.ts';
import * as phaseShapes from './eventPhaseShapes.ts';
import { requeuedData, resumeChosenData } from './eventResumeShapes.ts';
import * as shapes from './eventShapes.ts';
import type { JobId, NodeName } from './ids.ts';
import { flag, type Members, mapOf, nullable, oneOf, real, textShape, whole } from './jsonShapes.ts';
import type { TrainingSignKind } from './training.ts';
import { fireOutcomes, triggerData } from './triggers.ts';

interface EventRule {
  /** The subject of an event about output is its job, or `cluster` once the job has ended. */
  readonly subject: 'job' | 'output' | 'node' | 'cluster';
  /** One clause for people, in Markdown. */
  readonly when: string;
  /** Members of the data. `?` marks one that may be absent. Events of jobs have `name` besides. */
  readonly data: Members;
}

export const eventKinds = {
  'job.submitted': {
    subject: 'job',
    when: 'a submit was accepted',
    data: shapes.submittedData,
  },
  'job.queued': {
    subject: 'job',
    when: 'an attempt ended, and the job waits for the next',
    data: shapes.queuedData,
  },
  'job.circuit_open': {
    subject: 'job',
    when: 'too many failures in a row: retries are paused',
    data: { cause: shapes.cause, failuresInRow: whole(3), pauseMs: whole(300_000) },
  },
  'job.preempted': {
    subject: 'job',
    when: 'a job of higher priority (`by`) or a drain takes its GPUs',
    data: shapes.preemptedData,
  },
  'job.requeued': {
    subject: 'job',
    when: 'a user requeued it while it was queued or stopping; if it runs, `job.stopping` reports it',
    data: requeuedData,
  },
  'job.extended': {
    subject: 'job',
    when: 'it was given more time',
    data: { byMs: whole(3_600_000), extraRuntimeMs: whole(3_600_000) },
  },
  'job.stopping': {
    subject: 'job',
    when: 'its tasks were told to stop; `next` is the state that follows',
    data: shapes.stoppingData,
  },
  'job.succeeded': { subject: 'job', when: 'it has ended well', data: {} },
  'job.failed': { subject: 'job', when: 'it has failed, and is not retried', data: { cause: shapes.cause } },
  'job.cancelled': {
    subject: 'job',
    when: 'it was stopped by a user or a rule',
    data: { cause: shapes.cause },
  },
  'attempt.allocated': {
    subject: 'job',
    when: 'nodes and GPUs were chosen; `resume` is the checkpoint that it is offered',
    data: shapes.allocatedData,
  },
  'attempt.resume_chosen': {
    subject: 'job',
    when: 'the look before the start has found something else to resume from than `planned`, and `resume` is offered',
    data: resumeChosenData,
  },
  'attempt.checked': {
    subject: 'job',
    when: 'the paths between its nodes were tested',
    data: shapes.checkedData,
  },
  'preflight.measured': {
    subject: 'job',
    when: 'the paths were measured',
    data: shapes.measuredData,
  },
  'attempt.released': {
    subject: 'job',
    when: 'every task is checked, and all may start',
    data: shapes.releasedData,
  },
  'attempt.running': { subject: 'job', when: 'every task runs', data: { attempt: shapes.attemptNumber } },
  'attempt.hung': {
    subject: 'job',
    when: 'no progress, and idle GPUs',
    data: shapes.hungData,
  },
  'attempt.ended': {
    subject: 'job',
    when: 'all of its tasks have ended',
    data: shapes.attemptEndData,
  },
  'task.ended': { subject: 'job', when: 'one task has ended', data: shapes.taskEndData },
  'task.frozen': { subject: 'job', when: 'its lease has expired', data: shapes.taskData },
  'task.thawed': {
    subject: 'job',
    when: 'its lease was renewed after it had expired',
    data: shapes.taskData,
  },
  'phase.started': {
    subject: 'job',
    when: 'the first attempt of a phase was allocated; `start` and `end` count from the beginning of the training',
    data: phaseShapes.phaseStartData,
  },
  'phase.extended': {
    subject: 'job',
    when: 'a phase did not meet its criterion, and is extended up to `end`',
    data: phaseShapes.phaseExtendedData,
  },
  'phase.ended': {
    subject: 'job',
    when: 'a phase has ended; `next` is what follows: the next phase (`next`), or the end of the job',
    data: phaseShapes.phaseEndData,
  },
  'checkpoint.saved': {
    subject: 'job',
    when: 'a checkpoint is complete and verified',
    data: shapes.checkpointData('verified', null),
  },
  'checkpoint.seen': {
    subject: 'job',
    when: 'a checkpoint is complete and cannot be verified',
    data: shapes.checkpointData('unverified', 'its format is not known'),
  },
  'checkpoint.corrupt': {
    subject: 'job',
    when: 'a checkpoint is damaged',
    data: shapes.checkpointData('corrupt', 'it is cut off'),
  },
  'checkpoint.gone': {
    subject: 'job',
    when: 'a checkpoint was deleted',
    data: shapes.checkpointData('gone', 'it was deleted'),
  },
  'checkpoint.suspect': {
    subject: 'job',
    when: 'two attempts that resumed from it failed in the same way',
    data: shapes.suspectData,
  },
  'training.nan_loss': {
    subject: 'job',
    when: 'the loss is not a finite number',
    data: shapes.signData("{'loss': nan, 'step': 1201}"),
  },
  'training.loss_divergence': {
    subject: 'job',
    when: 'the loss diverges',
    data: shapes.signData("{'loss': 41.7, 'step': 1201}"),
  },
  'training.loss_spike': {
    subject: 'job',
    when: 'the loss has a spike',
    data: shapes.signData("{'loss': 9.4, 'step': 1201}"),
  },
  'training.loss_scale_exhausted': {
    subject: 'job',
    when: 'the loss scale of mixed precision has reached its minimum',
    data: shapes.signData('Gradient overflow. Skipping step, reducing loss scale to 1.0'),
  },
  'training.resume_confirmed': {
    subject: 'job',
    when: 'the first steps of the output show that the program has loaded the checkpoint that it was offered; `step` is the first one',
    data: shapes.signData("{'loss': 2.31, 'step': 1201}"),
  },
  'training.resume_ignored': {
    subject: 'job',
    when: 'the first steps of the output show that the program has not loaded the checkpoint that it was offered',
    data: shapes.signData("{'loss': 10.9, 'step': 1}"),
  },
  'training.started': {
    subject: 'job',
    when: 'the output of the attempt shows its first training step, printed at `atMs`',
    data: { ...shapes.taskData, step: nullable(whole(1)), atMs: shapes.timeMs },
  },
  'training.complete': {
    subject: 'job',
    when: 'the program left `training_complete.marker`',
    data: shapes.taskData,
  },
  'training.stats': {
    subject: 'job',
    when: 'every half minute while it runs; not stored. `text` says it in words, the others are of its GPUs together',
    data: shapes.statsData,
  },
  'log.truncated': {
    subject: 'output',
    when: 'a part of the output of a task was dropped for the first time',
    data: shapes.truncatedData,
  },
  'log.throttled': {
    subject: 'output',
    when: 'a task is held back for the first time because it writes too fast',
    data: { job: textShape('job_4n2k8qwz1y7m'), attempt: shapes.attemptNumber, nodeRank: whole(0) },
  },
  'log.removed': {
    subject: 'output',
    when: 'the stored output of a job was deleted',
    data: shapes.removedLogData,
  },
  'node.joined': { subject: 'node', when: 'its first connection', data: { inventory: shapes.inventory } },
  'node.online': {
    subject: 'node',
    when: 'its agent connected',
    data: { bootId: textShape('a4c2dedd-444d-418f-91f1-b1597c451977') },
  },
  'node.silent': { subject: 'node', when: 'no heartbeat for three intervals', data: {} },
  'node.fenced': {
    subject: 'node',
    when: 'its tasks no longer run for certain',
    data: { silentForMs: nullable(whole(71_000)), tasks: shapes.taskRefs },
  },
  'node.confirmed_dead': {
    subject: 'node',
    when: 'a user or the fence command confirmed that it is dead',
    data: { by: textShape('admin'), tasks: shapes.taskRefs },
  },
  'node.changed': { subject: 'node', when: 'its hardware changed', data: shapes.changedData },
  'condition.raised': { subject: 'node', when: 'it has a new condition', data: shapes.conditionData },
  'condition.changed': {
    subject: 'node',
    when: 'the severity, action or message of a condition changed',
    data: shapes.conditionData,
  },
  'condition.cleared': { subject: 'node', when: 'a condition no longer holds', data: shapes.conditionData },
  'node.clear_asked': {
    subject: 'node',
    when: 'a user cleared a condition',
    data: { kind: shapes.conditionData.kind, gpuUuid: shapes.conditionData.gpuUuid },
  },
  'node.drained': {
    subject: 'node',
    when: 'it gets no new work, by a user or because its machine shuts down',
    data: { reason: textShape('a new kernel'), deadlineMs: nullable(shapes.timeMs) },
  },
  'node.undrained': { subject: 'node', when: 'its drain ended', data: {} },
  'node.orphans_ended': {
    subject: 'node',
    when: 'a user ended tasks that the store does not know',
    data: { count: whole(1), tasks: shapes.taskRefs },
  },
  'node.duplicate_identity': {
    subject: 'node',
    when: 'another machine with its identity was refused',
    data: { holder: identityData, refused: identityData },
  },
  'node.rejoin_allowed': {
    subject: 'node',
    when: 'an admin let another machine with its credential be the node',
    data: {},
  },
  'node.removed': { subject: 'node', when: 'a user removed it', data: {} },
  'cluster.suspect': {
    subject: 'cluster',
    when: 'many nodes became silent together, so nothing is fenced',
    data: shapes.partitionData,
  },
  'cluster.trusted': {
    subject: 'cluster',
    when: 'that has ended',
    data: shapes.partitionData,
  },
  'cluster.maintenance': {
    subject: 'cluster',
    when: 'a maintenance began or ended (0)',
    data: { forMs: whole(1_800_000), by: textShape('admin') },
  },
  'clock.stepped': {
    subject: 'cluster',
    when: "the coordinator's system clock was set by `byMs`, and nothing confirms it",
    data: clockShapes.clockSteppedData,
  },
  'clock.settled': {
    subject: 'cluster',
    when: 'that has ended, or the time that passed over a reboot or a move was confirmed; the trusted time was set by `setByMs`',
    data: clockShapes.clockSettledData,
  },
  'retention.removed': {
    subject: 'cluster',
    when: 'ended jobs were removed, or more is old than may go in a day (`isHeldBack`), which is a tenth; `dueJobs` are old and still there',
    data: clockShapes.retentionData,
  },
  'store.restored': {
    subject: 'cluster',
    when: 'the store was restored from a backup',
    data: shapes.restoreData,
  },
  'store.accepted': {
    subject: 'cluster',
    when: 'a store that had lost commits was accepted',
    data: shapes.restoreData,
  },
  'store.advanced': {
    subject: 'cluster',
    when: 'attempts that the store did not know were passed over',
    data: shapes.advancedData,
  },
  'alert.created': {
    subject: 'cluster',
    when: 'a user has set an alert',
    data: shapes.ruleData,
  },
  'alert.deleted': { subject: 'cluster', when: 'an alert was deleted', data: shapes.alertRefData },
  'alert.firing': {
    subject: 'cluster',
    when: 'the condition of an alert began to hold for `of`, which is a job, a node or `cluster`; nobody is notified if it is `silenced`',
    data: shapes.alertData,
  },
  'alert.repeated': {
    subject: 'cluster',
    when: 'it still holds after the time of `repeat`, or after a silence, and people are notified again',
    data: shapes.alertData,
  },
  'alert.resolved': {
    subject: 'cluster',
    when: 'it no longer holds; `silenced` means that nobody was notified of the firing',
    data: { ...shapes.alertData, reason: textShape('over') },
  },
  'alert.acknowledged': {
    subject: 'cluster',
    when: 'a user has acknowledged a firing, and it is not repeated',
    data: shapes.acknowledgedData,
  },
  'alert.silenced': {
    subject: 'cluster',
    when: 'an alert notifies nobody until `untilMs`; 0 ends the silence',
    data: shapes.silencedData,
  },
  'sweep.created': {
    subject: 'cluster',
    when: 'a user has started a sweep; its trials are jobs with the label `muster.sweep`',
    data: { ...shapes.sweepData, sampler: textShape('tpe'), trials: whole(40) },
  },
  'sweep.trial_ended': {
    subject: 'cluster',
    when: 'a trial has ended, with its `value` if it has one',
    data: shapes.trialEndData,
  },
  'sweep.trial_paused': {
    subject: 'cluster',
    when: 'a trial was stopped at a rung, with a checkpoint from which it can be resumed',
    data: { ...shapes.jobOfTrial, value: real(2.31), step: nullable(whole(900)) },
  },
  'sweep.trial_resumed': {
    subject: 'cluster',
    when: 'a paused trial is among the best of its rung, and continues as `jobId` from the checkpoint at `step`',
    data: { ...shapes.jobOfTrial, resumedFrom: textShape('job_2c6m9r4t7x1z'), step: nullable(whole(900)) },
  },
  'sweep.stopped': {
    subject: 'cluster',
    when: 'a user has stopped a sweep, and its trials are stopped',
    data: { ...shapes.sweepData, reason: textShape('') },
  },
  'sweep.extended': {
    subject: 'cluster',
    when: 'a user has given a sweep more trials; it has `trials` in all',
    data: { ...shapes.sweepData, trials: whole(60) },
  },
  'sweep.ended': {
    subject: 'cluster',
    when: 'a sweep is `done`, `stopped` or `failed`, and none of its trials runs; `best` is the number of its best trial',
    data: shapes.sweepEndData,
  },
  'pipeline.created': {
    subject: 'cluster',
    when: 'a user has started a run of a pipeline; the jobs of its steps have the label `muster.pipeline`',
    data: { ...shapes.pipelineData, steps: whole(5) },
  },
  'pipeline.step_ended': {
    subject: 'cluster',
    when: 'a step of a pipeline has ended, or will not be started; `reason` says why it has not succeeded',
    data: {
      ...shapes.pipelineData,
      step: textShape('train'),
      index: whole(0),
      state: textShape('succeeded'),
      tries: whole(1),
      jobId: nullable(shapes.jobId),
      sweepId: nullable(textShape('swp_k9e2j5m8ang3'), null),
      reason: nullable(textShape('prepare has failed'), null),
    },
  },
  'pipeline.stopped': {
    subject: 'cluster',
    when: 'a user has stopped a run of a pipeline, and its steps are stopped',
    data: { ...shapes.pipelineData, reason: textShape('') },
  },
  'pipeline.ended': {
    subject: 'cluster',
    when: 'a run of a pipeline is `succeeded`, `failed` or `stopped`, and none of its steps runs',
    data: {
      ...shapes.pipelineData,
      state: textShape('succeeded'),
      reason: nullable(textShape('train has failed: exit code 1'), null),
    },
  },
  'trigger.created': {
    subject: 'cluster',
    when: 'a user has set a trigger, which starts runs of `pipeline` by itself',
    data: triggerData,
  },
  'trigger.deleted': {
    subject: 'cluster',
    when: 'a trigger was deleted; its runs continue',
    data: triggerData,
  },
  'trigger.paused': {
    subject: 'cluster',
    when: 'a trigger starts nothing until it is resumed',
    data: triggerData,
  },
  'trigger.resumed': {
    subject: 'cluster',
    when: 'a trigger that was paused starts runs again',
    data: triggerData,
  },
  'trigger.blocked': {
    subject: 'cluster',
    when: 'the directory of a trigger by data cannot be listed, so that new data in it starts no run',
    data: {
      ...triggerData,
      cause: textShape('"/data/incoming" may not be watched, or is not there'),
      remedy: textShape("provide a directory of the coordinator's machine below /data"),
    },
  },
  'trigger.unblocked': {
    subject: 'cluster',
    when: 'the directory of a trigger that was blocked can be listed again',
    data: triggerData,
  },
  'trigger.fired': {
    subject: 'cluster',
    when: 'a trigger has started `run`, or `reason` says why it has not',
    data: {
      ...triggerData,
      cause: textShape('2026-11-24T03:00:00Z'),
      outcome: oneOf(fireOutcomes),
      run: nullable(textShape('pln_k9e2j5m8ang3')),
      reason: nullable(textShape('pln_2c6m9r4t7x1z of it has not ended'), null),
    },
  },
  'checkpoint.evaluated': {
    subject: 'cluster',
    when: 'the evaluation of a checkpoint of `jobId` is `complete` or has `failed`',
    data: {
      jobId: shapes.jobId,
      checkpoint: textShape('checkpoint-1200'),
      step: nullable(whole(1_200)),
      evaluationJob: nullable(shapes.jobId),
      state: oneOf(['complete', 'failed']),
      metrics: mapOf(real(1), { eval_loss: 2.28 }),
      cause: nullable(textShape('no_metric'), null),
    },
  },
  'project.changed': {
    subject: 'cluster',
    when: 'an admin has made a project private, or open again',
    data: { project: shapes.project, isPrivate: flag(true) },
  },
  'secret.set': {
    subject: 'cluster',
    when: 'a secret of `project` was stored, or got another value (`replaced`)',
    data: { project: shapes.project, name: textShape('wandb'), replaced: flag(false) },
  },
  'secret.removed': {
    subject: 'cluster',
    when: 'a secret was removed',
    data: { project: shapes.project, name: textShape('wandb') },
  },
  'secret.key_rotated': {
    subject: 'cluster',
    when: 'so many `secrets` were encrypted again, with a new key',
    data: { secrets: whole(4) },
  },
  'token.created': {
    subject: 'cluster',
    when: 'a join token was made',
    data: { id: textShape('join:104b4c46e36e65da'), node: shapes.node, replaces: flag(false) },
  },
  'token.joined': {
    subject: 'cluster',
    when: 'the join token `token` was used; `replaced` is the credential that ended with it',
    data: shapes.joinedData,
  },
  'token.expired': {
    subject: 'cluster',
    when: 'a credential has expired',
    data: { id: shapes.caller, 'node?': shapes.node, 'user?': shapes.user },
  },
  'token.issued': {
    subject: 'cluster',
    when: 'a user got a token: by `login`, by `id_token` of an issuer, by `create`, or by `rotate` in the place of `replaced`',
    data: shapes.issuedData,
  },
  'token.renewed': {
    subject: 'cluster',
    when: 'an agent has renewed its credential',
    data: { id: shapes.agentToken, node: shapes.node },
  },
  'token.revoked': {
    subject: 'cluster',
    when: 'a credential was revoked',
    data: { id: shapes.caller, 'node?': shapes.node, 'user?': shapes.user },
  },
  'token.rotated': {
    subject: 'cluster',
    when: 'the admin token was replaced',
    data: { id: textShape('admin:0358044b57a48355') },
  },
  'user.added': { subject: 'cluster', when: 'a user was added', data: shapes.userData },
  'user.changed': {
    subject: 'cluster',
    when: 'a user got another role, or other projects',
    data: shapes.userData,
  },
  'user.code_created': {
    subject: 'cluster',
    when: 'a login code for a user was made',
    data: { id: textShape('login:3119975805a5d908'), user: shapes.user },
  },
  'user.removed': {
    subject: 'cluster',
    when: 'a user was removed, and all their tokens with them',
    data: { user: shapes.user },
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
  [K in JobEventKind]: 'attempt' extends keyof Rules[K]['data'] ? K : never;
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
  ? { readonly [Name in Always<keyof Rules[K]['data'] & string>]: unknown } & {
      readonly [Name in Sometimes<keyof Rules[K]['data'] & string>]?: unknown;
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
