/** One job and what happens to it, for tests. */

import { causeOf } from '@muster/common/cause';
import type { CheckpointFacts, ResumeChoice } from '@muster/common/checkpoints';
import type { NewEvent } from '@muster/common/eventKinds';
import type { PathFindings } from '@muster/common/gangs';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { HangSign, TrainingSign } from '@muster/common/training';
import type { Resume, TaskEnd } from '@muster/common/views';
import { problemOfEvent } from './events/eventSchemaFixture.ts';
import { peersOf } from './lifecycle/network.ts';
import { type JobEvent, transition } from './lifecycle/transition.ts';
import { type Attempt, currentAttempt, type Job } from './model.ts';
import {
  aCheckpoint,
  aJob,
  allocation,
  anEndpoint,
  anExit,
  aSpec,
  jobIdOf,
  nodeNameOf,
  placementsFor,
  someMs,
} from './modelFixture.ts';

export const crash = anExit({ exitCode: 1 });
export const imageMissing: TaskEnd = anExit({
  exitCode: null,
  startError: causeOf('image_pull', 'there is no image train:2'),
});
export const nodeLost = causeOf('node_lost', 'node-1 went silent', { nodeRank: 0, node: 'node-1' });

/** How many nodes it gets, as many as it wants by default; and what it begins from. */
interface Allocated {
  readonly count?: number;
  readonly preflight?: boolean;
  readonly resume?: Resume | null;
}

type PreparedFields = Partial<Extract<JobEvent, { kind: 'prepared' }>>;

/** Where node rank 0, 1 … is, and the port that answers its peers. */
export const addressOf = (nodeRank: number) => `10.0.0.${nodeRank + 1}`;
export const portOf = (nodeRank: number) => 29_500 + nodeRank;

/** Time passes by a second with each event. */
export class Story {
  job: Job;
  readonly emitted: NewEvent[] = [];
  readonly endedAttempts: Attempt[] = [];
  nowMs = someMs;

  constructor(file: Partial<JobSpecFile> = {}, fields: Partial<Job> = {}) {
    this.job = aJob(1, { spec: aSpec(file), ...fields });
  }

  /** Kinds of all events so far. */
  get events(): readonly string[] {
    return this.emitted.map(({ kind }) => kind);
  }

  /** Data of the newest event of a kind. */
  data(kind: string): Readonly<Record<string, unknown>> | undefined {
    return this.emitted.findLast((event) => event.kind === kind)?.data;
  }

  on(event: JobEvent): this {
    this.nowMs += 1_000;
    const { job, ended, events } = transition(this.job, event, this.nowMs);
    this.job = job;
    if (ended !== null) this.endedAttempts.push(ended);
    const problems = events.flatMap((each) => problemOfEvent(each) ?? []);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    this.emitted.push(...events);
    return this;
  }

  allocated(fields: Allocated = {}): this {
    const { count, ...rest } = fields;
    return this.on(allocation(placementsFor(this.job, count), rest));
  }

  prepared(nodeRank: number, fields: PreparedFields = {}): this {
    return this.on({
      kind: 'prepared',
      attempt: this.job.lastAttempt,
      nodeRank,
      master: nodeRank === 0 ? { addr: '10.9.9.9', port: portOf(0) } : null,
      endpoints: [anEndpoint({ address: addressOf(nodeRank) })],
      testPort: portOf(nodeRank),
      ...fields,
    });
  }

  allPrepared(): this {
    for (const { nodeRank } of this.tasks) this.prepared(nodeRank);
    return this;
  }

  /** @param errors by the rank that could not be reached */
  checked(
    nodeRank: number,
    errors: Readonly<Record<number, string>> = {},
    fields: Partial<PathFindings> = {},
    attempt = this.job.lastAttempt,
  ): this {
    const network = this.attempt?.network ?? { round: 1, addresses: [] };
    const peers = this.attempt === null ? [] : peersOf(this.attempt, network, nodeRank);
    const paths = peers.map((peer) => ({
      nodeRank: peer.nodeRank,
      error: errors[peer.nodeRank] ?? null,
      roundTripUs: 100,
    }));
    const findings = { round: network.round, paths, preflight: null, ...fields };
    return this.on({ kind: 'checked', attempt, nodeRank, findings });
  }

  running(nodeRank: number, attempt = this.job.lastAttempt): this {
    return this.on({ kind: 'taskRunning', attempt, nodeRank });
  }

  ended(
    nodeRank: number,
    exit: TaskEnd = anExit(),
    attempt = this.job.lastAttempt,
    failedAtMs: number | null = null,
  ): this {
    return this.on({ kind: 'taskEnded', attempt, nodeRank, exit, failedAtMs });
  }

  lost(nodeRank: number, lastContactMs: number | null = null): this {
    const node = nodeNameOf(`node-${nodeRank + 1}`);
    const message = `${node} was rebooted`;
    return this.on({ kind: 'taskLost', attempt: this.job.lastAttempt, nodeRank, message, lastContactMs });
  }

  requeued(from: ResumeChoice = { kind: 'newest' }): this {
    return this.on({ kind: 'requeue', from });
  }

  preempted(fields: Partial<Extract<JobEvent, { kind: 'preempt' }>> = {}): this {
    const message = 'preempted by job_2, which has more priority';
    return this.on({ kind: 'preempt', attempt: this.job.lastAttempt, message, by: jobIdOf(2), ...fields });
  }

  /** Seen by rank 0: `aCheckpoint` of this step, with these fields. */
  saved(
    step: number | null,
    facts: Partial<CheckpointFacts> = {},
    fields: Partial<Omit<Extract<JobEvent, { kind: 'checkpoint' }>, 'kind'>> = {},
  ): this {
    const checkpoint = aCheckpoint(step, { savedAtMs: this.nowMs, ...facts });
    const event = { attempt: this.job.lastAttempt, nodeRank: 0, shared: false, afterStop: false, ...fields };
    return this.on({ kind: 'checkpoint', checkpoint, ...event });
  }

  noticed(fields: Partial<TrainingSign> = {}, nodeRank = 0): this {
    const sign = {
      kind: 'nan_loss',
      step: 120,
      lastGoodStep: 119,
      rank: 0,
      line: 7,
      text: 'loss nan',
    } as const;
    return this.on({
      kind: 'trainingSign',
      attempt: this.job.lastAttempt,
      nodeRank,
      sign: { ...sign, ...fields },
    });
  }

  hung(fields: Partial<HangSign> = {}, nodeRank = 0): this {
    const sign = { quietForMs: 600_000, usualMs: 30_000, gpus: 'pinned', rank: 0 } as const;
    return this.on({ kind: 'hung', attempt: this.job.lastAttempt, nodeRank, sign: { ...sign, ...fields } });
  }

  stopped(reason = ''): this {
    return this.on({ kind: 'stop', reason });
  }

  /** Allocated, prepared and released, on every node. */
  released(fields: Allocated = {}): this {
    this.allocated(fields).allPrepared();
    if (this.tasks.length > 1) for (const { nodeRank } of this.tasks) this.checked(nodeRank);
    return this;
  }

  allRunning(fields: Allocated = {}): this {
    this.released(fields);
    for (const { nodeRank } of this.tasks) this.running(nodeRank);
    return this;
  }

  get attempt(): Attempt | null {
    return currentAttempt(this.job);
  }

  get tasks(): Attempt['tasks'] {
    return this.attempt?.tasks ?? [];
  }

  /** Of its tasks. */
  get states(): readonly string[] {
    return this.tasks.map(({ state }) => state);
  }

  get excludedNodes(): readonly string[] {
    return this.job.excludedNodes.map(({ node }) => node);
  }
}

export const aStory = (file: Partial<JobSpecFile> = {}, fields: Partial<Job> = {}) => new Story(file, fields);

/** Of two nodes. */
export const aGang = (file: Partial<JobSpecFile> = {}, fields: Partial<Job> = {}) =>
  new Story({ resources: { nodes: 2, gpus: 1 }, ...file }, fields);
