/**
 * Combines the parts of this folder: leases, silence and fences. It is opened before the coordinator serves, and runs at every
 * tick. Other parts of the coordinator use `LeaseGrants`, `paused`, `term` and `checkAccount`.
 */
import type { Clock } from '@muster/common/clock';
import { MusterError, messageOf } from '@muster/common/errors';
import { clusterSubject, type NewEvent } from '@muster/common/eventKinds';
import type { NodeName, RandomBytes, TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { AgentRegistry } from '../agents/registry.ts';
import { type Caller, callerName, coordinatorPart } from '../caller.ts';
import { confirmDead, nodeSilent } from '../commands/nodes.ts';
import type { RunFenceCommand } from '../leases/fenceCommand.ts';
import { GrantedLeases } from '../leases/grantedLeases.ts';
import {
  endLostTasks,
  fencedAfterMs,
  type LeaseGrants,
  type LeaseSettings,
  longestLeaseMs,
} from '../leases/leases.ts';
import { Maintenance } from '../leases/maintenance.ts';
import type { MetaStore } from '../leases/metaStore.ts';
import { Proofs } from '../leases/proofs.ts';
import { type NewerToken, Terms } from '../leases/terms.ts';
import type { AgentAccount } from '../leases/testimony.ts';
import type { Command, Loop } from '../loop.ts';
import type { Attempt, Job } from '../model.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState, Draft } from '../state/state.ts';
import { Duplicates } from './duplicates.ts';
import { FenceHook } from './fenceHook.ts';
import { PartitionDetector } from './partitionDetector.ts';

export interface LeaseParts {
  readonly state: ClusterState;
  readonly store: MetaStore;
  readonly agents: AgentRegistry;
  readonly clock: Clock;
  /** Random bytes for the key of the proofs, which is made at the first start. */
  readonly random: RandomBytes;
  readonly log: Logger;
  readonly settings: LeaseSettings;
  /** The interval between two runs of `run`. */
  readonly tickMs: number;
  /** null: there is none. */
  readonly runFenceCommand: RunFenceCommand | null;
}

const maintenanceMsMin = 10_000;
const maintenanceMsMax = 24 * 60 * 60_000;

export class LeaseKeeper implements LeaseGrants {
  private readonly grantedLeases: GrantedLeases;
  private readonly parts: LeaseParts;
  private readonly terms: Terms;
  private readonly proofs: Proofs;
  private readonly maintenance: Maintenance;
  private readonly stalls: ProcessStalls;
  /** The parts that need the loop, which does not exist when this is opened. */
  private attached: {
    loop: Loop;
    partition: PartitionDetector;
    hook: FenceHook | null;
    duplicates: Duplicates;
  } | null = null;
  private wasPaused = false;

  private constructor(parts: LeaseParts, proofs: Proofs, terms: Terms, maintenance: Maintenance) {
    const { clock, settings, agents } = parts;
    this.parts = parts;
    this.proofs = proofs;
    this.terms = terms;
    this.maintenance = maintenance;
    this.stalls = new ProcessStalls(parts.tickMs, clock.monotonicMs());
    this.grantedLeases = new GrantedLeases({
      settings,
      maintenance,
      monotonicMs: () => clock.monotonicMs(),
      lastContactMs: (node) => agents.lastContactMs(node),
    });
  }

  /** Begins the next term. Nothing is served before this has resolved. */
  static async open(parts: LeaseParts): Promise<LeaseKeeper> {
    const { store, state, clock, settings, log } = parts;
    const monotonicMs = () => clock.monotonicMs();
    const onWriteFailed = (error: unknown) =>
      log.error(
        { error: messageOf(error) },
        'numbers that agents know and the store does not could not be stored',
      );
    const proofs = await Proofs.open(store, parts.random);
    const terms = await Terms.begin({
      store,
      state,
      proofs,
      monotonicMs,
      onWriteFailed,
      random: parts.random,
    });
    return new LeaseKeeper(
      parts,
      proofs,
      terms,
      await Maintenance.open(store, settings, clock.monotonicMs()),
    );
  }

  /** Called once, before the first `run`. */
  attach(loop: Loop): void {
    const { state, agents, clock, settings, log, runFenceCommand: runCommand } = this.parts;
    const monotonicMs = () => clock.monotonicMs();
    const paused = () => this.fencingPaused();
    const shared = { state, loop, agents, monotonicMs };
    this.attached = {
      loop,
      duplicates: new Duplicates({ ...shared, clock, log }),
      partition: new PartitionDetector({ ...shared, windowMs: settings.leaseMs }),
      hook: runCommand === null ? null : new FenceHook({ ...shared, log, paused, runCommand }),
    };
  }

  grant(node: NodeName, attempt: Attempt): number {
    return this.grantedLeases.grant(node, attempt);
  }

  proofOf(node: NodeName, task: TaskRef, submitSeq: number): string {
    return this.proofs.ofTask(node, task, submitSeq);
  }

  /** The number of leases granted since the start, renewals included. */
  get granted(): number {
    return this.grantedLeases.granted;
  }

  /** The term of this run of the coordinator. It grows when the store is advanced. */
  get term(): number {
    return this.terms.term;
  }

  /** The proof that an agent was welcomed in this term; the agent repeats it. */
  termProofOf(node: NodeName): string {
    return this.terms.proofFor(node);
  }

  /**
   * Called for every Hello, before it has any effect.
   * @returns what the agent claims without proof; its node gets no new work while it does. null: nothing
   */
  checkAccount(account: AgentAccount): string | null {
    return this.terms.checkAccount(account);
  }

  /** What the agents' side of the coordinator needs to know which machines are nodes of this store. */
  hubParts() {
    const { terms, proofs } = this;
    return {
      proofs,
      duplicates: this.duplicates,
      term: (node: NodeName) => ({ term: terms.term, termProof: this.termProofOf(node) }),
      checkAccount: (account: AgentAccount) => this.checkAccount(account),
      noteNewerToken: (node: NodeName, token: NewerToken) => terms.noteNewerToken(node, token),
    };
  }

  /** Machines that are refused because another one has their identity. */
  get duplicates(): Duplicates {
    if (this.attached === null) throw new Error('the lease keeper was not attached to a loop');
    return this.attached.duplicates;
  }

  /** Why nothing is started or rescheduled now, and what ends that. null: jobs are started. */
  paused(): string | null {
    return this.terms.paused() ?? this.attached?.partition.paused() ?? null;
  }

  /** The silent nodes because of which this coordinator suspects that it is partitioned itself. */
  get suspectNodes(): number {
    return this.attached?.partition.suspects.size ?? 0;
  }

  /** The rest of the maintenance, in milliseconds; 0: there is none. */
  maintenanceMs(): number {
    return Math.ceil(this.maintenance.leftMs(this.parts.clock.monotonicMs()));
  }

  /**
   * Milliseconds until no task of a silent node executes, for certain; 0: already. null: the node responds, has no tasks, or has
   * one that is never fenced.
   */
  fencedInMs(node: NodeName, jobs: Iterable<Job> = this.parts.state.jobs.values()): number | null {
    if (!this.parts.agents.isSilent(node)) return null;
    const tasks = heldTasks(jobs).get(node) ?? [];
    const moments = tasks.map(({ attempt }) => this.grantedLeases.fencedAtMs(node, attempt));
    if (moments.length === 0 || moments.includes(null)) return null;
    const lastMs = Math.max(...moments.map((moment) => moment ?? 0));
    return Math.max(0, Math.ceil(lastMs - this.parts.clock.monotonicMs()));
  }

  /**
   * When a task of a silent node executes nothing for certain, and when it is ended as lost: milliseconds from now; 0: already.
   * @returns null: never, without proof that the node is dead
   */
  taskFence(
    node: NodeName,
    attempt: Attempt,
  ): { readonly frozenInMs: number; readonly fencedInMs: number } | null {
    const { clock, settings } = this.parts;
    const fencedAtMs = this.grantedLeases.fencedAtMs(node, attempt);
    if (fencedAtMs === null) return null;
    const untilMs = (atMs: number) => Math.max(0, Math.ceil(atMs - clock.monotonicMs()));
    return { frozenInMs: untilMs(fencedAtMs - settings.marginMs), fencedInMs: untilMs(fencedAtMs) };
  }

  /** One pass; idempotent. The order matters: pauses of this process are subtracted before a node is judged silent. */
  run(): readonly Promise<unknown>[] {
    if (this.attached === null) return [];
    const { agents, state, clock, log } = this.parts;
    const { loop, partition, hook, duplicates } = this.attached;
    const nowMs = clock.monotonicMs();
    const pausedForMs = this.stalls.take(nowMs);
    if (pausedForMs > 0) {
      log.warn(
        { pausedForMs: Math.round(pausedForMs) },
        'this process did not run: no node was silent meanwhile',
      );
      agents.forgive(pausedForMs);
    }
    const noticed = [...noticeSilentNodes(agents, loop), ...partition.run()];
    const { grantedLeases } = this;
    const paused = () => this.fencingPaused();
    const monotonicMs = () => clock.monotonicMs();
    const fenced = endFencedTasks({ state, loop, agents, grantedLeases, monotonicMs, paused });
    hook?.run();
    duplicates.pass();
    const isPaused = this.paused() !== null;
    if (isPaused !== this.wasPaused) loop.wake();
    this.wasPaused = isPaused;
    return [...noticed, ...fenced, ...this.maintenance.run(nowMs), ...this.terms.run()];
  }

  /** @throws {MusterError} `failed_precondition` while the node answers */
  async confirmDead(node: NodeName, caller: Caller): Promise<void> {
    const { agents } = this.parts;
    const proof = { kind: 'person', caller } as const;
    const silence = await this.loop().run(caller, (draft, nowMs) =>
      confirmDead(draft, agents, node, proof, nowMs),
    );
    agents.noteDead(node, silence);
  }

  /** @throws {MusterError} `invalid` unless it is 0, which ends it, or 10 s to 24 h */
  async setMaintenance(forMs: number, caller: Caller): Promise<void> {
    const isRight = forMs === 0 || (forMs >= maintenanceMsMin && forMs <= maintenanceMsMax);
    if (!isRight || !Number.isInteger(forMs))
      throw new MusterError(
        'invalid',
        `invalid maintenance of ${forMs / 1_000} s; expected 10 s to 24 h, or 0 to end it`,
      );
    await this.maintenance.set(forMs, () => this.parts.clock.monotonicMs());
    const event: NewEvent = {
      kind: 'cluster.maintenance',
      subject: clusterSubject,
      data: { forMs, by: callerName(caller).by },
    };
    await this.loop().run(caller, (draft, nowMs) => draft.emit(event, nowMs));
  }

  /**
   * Continues with a store that was restored from an old copy.
   * @throws {MusterError} `failed_precondition` when it was not
   */
  async advanceStore(caller: Caller): Promise<void> {
    const { state, settings, agents } = this.parts;
    const leastMs = Math.max(settings.leaseMs, this.maintenanceMs());
    const longestMs = longestLeaseMs(state.jobs.values(), leastMs);
    const quietMs = fencedAfterMs(settings, longestMs);
    const run = (command: Command<void>) => this.loop().run(caller, command);
    const accepted = await this.terms.advance(quietMs, run, callerName(caller).by);
    // The next Hello of each agent shows whether it still claims more than the store has.
    for (const node of accepted) agents.endSession(node);
    this.loop().wake();
  }

  async close(): Promise<void> {
    await this.attached?.hook?.close();
  }

  /** Why no node is fenced now. null: silent nodes are fenced. */
  private fencingPaused(): string | null {
    return this.paused() ?? this.attached?.partition.settling() ?? null;
  }

  private loop(): Loop {
    if (this.attached === null) throw new Error('the lease keeper was not attached to a loop');
    return this.attached.loop;
  }
}

const fencesPart = coordinatorPart('fences');

interface FencedNodesParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly grantedLeases: Pick<GrantedLeases, 'fencedAtMs'>;
  readonly monotonicMs: () => number;
  /** Why nothing may be rescheduled; null: it may. */
  readonly paused: () => string | null;
}

/** Ends the tasks of silent nodes whose leases have certainly expired. One pass is idempotent. */
function endFencedTasks(parts: FencedNodesParts): readonly Promise<void>[] {
  if (parts.paused() !== null) return [];
  const due = [...heldTasks(parts.state.jobs.values())]
    .filter(([node, tasks]) => tasks.some(({ attempt }) => isFenced(parts, node, attempt)))
    .map(([node]) => node);
  return due.map((node) =>
    parts.loop.run(fencesPart, (draft, nowMs) => endTasksOf(parts, draft, node, nowMs)),
  );
}

/** It waited for its turn, and the node may have responded meanwhile: then its tasks have fresh leases. */
function endTasksOf(parts: FencedNodesParts, draft: Draft, node: NodeName, nowMs: number): void {
  const silentForMs = parts.agents.silentForMs(node);
  const silent =
    silentForMs === null
      ? `node ${node} has not responded since this coordinator started`
      : `node ${node} has been silent for ${Math.round(silentForMs / 1_000)} s`;
  const lastContactMs = silentForMs === null ? null : nowMs - silentForMs;
  const loss = { message: `${silent} and its lease has expired`, lastContactMs };
  const tasks = endLostTasks(draft, node, (attempt) => isFenced(parts, node, attempt), loss, nowMs);
  if (tasks.length > 0)
    draft.emit({ kind: 'node.fenced', subject: node, data: { silentForMs, tasks } }, nowMs);
}

function isFenced(
  { agents, grantedLeases, monotonicMs }: FencedNodesParts,
  node: NodeName,
  attempt: Attempt,
): boolean {
  if (!agents.isSilent(node)) return false;
  const fencedAtMs = grantedLeases.fencedAtMs(node, attempt);
  return fencedAtMs !== null && monotonicMs() >= fencedAtMs;
}

const missedTicks = 2;

/**
 * Detects that this process did not run for a while, because it was stopped, swapped out or suspended. Messages that nodes
 * sent in that time are not read yet, so the nodes must not be treated as silent.
 */
export class ProcessStalls {
  private readonly tickMs: number;
  private lastMs: number;

  /** @param tickMs the usual time between two calls of `take` */
  constructor(tickMs: number, nowMs: number) {
    this.tickMs = tickMs;
    this.lastMs = nowMs;
  }

  /**
   * Must be called at every tick, before a pass that judges the silence of nodes.
   * @param nowMs monotonic
   * @returns milliseconds for which this process did not run since the last tick; 0 if it ran
   */
  take(nowMs: number): number {
    const lateMs = nowMs - this.lastMs - this.tickMs;
    this.lastMs = nowMs;
    return lateMs > missedTicks * this.tickMs ? lateMs : 0;
  }
}

const silencePart = coordinatorPart('silent nodes');

/** Detects nodes that stopped answering. One pass is idempotent. */
function noticeSilentNodes(agents: AgentRegistry, loop: Loop): readonly Promise<void>[] {
  return agents
    .takeNewlySilent()
    .map((node) => loop.run(silencePart, (draft, nowMs) => nodeSilent(draft, node, nowMs)));
}
