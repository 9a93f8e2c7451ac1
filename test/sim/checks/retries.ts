/**
 * Checks what a failed attempt leads to, on the event log. G7 of docs/guarantees.md: when several ranks of a gang have
 * failed, the cause is the rank that failed first. `exclusion`: a node on which an attempt failed before its release is
 * excluded from the next attempt, where other nodes could run it, unless that node alone has the checkpoint from which the
 * attempt resumes.
 */
import type { Gpu, NodeInventory } from '@muster/common/hardware';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { Cause, TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

interface EndedTask {
  readonly nodeRank: number;
  readonly exit: TaskEnd | null;
}

interface Allocation {
  readonly tasks: readonly { readonly node: string }[];
  /** null: nothing. */
  readonly resume: { readonly name: string } | null;
}

interface ExcludedNode {
  readonly nodes: Set<string>;
  /** More nodes than the log names may be excluded. */
  isClear: boolean;
}

export class RetryCheck {
  private readonly released = new Set<string>();
  private readonly excludedNodes = new Map<string, ExcludedNode>();
  /** Nodes on which an attempt failed while it ran: the next one may do without them, too. By job. */
  private readonly failedOn = new Map<string, Set<string>>();
  /** Jobs of which an attempt has failed while it ran: their excluded nodes may outlast the next start. */
  private readonly failing = new Set<string>();
  /** Nodes that a user has drained. */
  private readonly drained = new Set<string>();
  /** Silent nodes: a job that has waited long does not go by them, because they may never return. */
  private readonly away = new Set<string>();
  private readonly gpuCounts = new Map<string, number>();
  /** By job, and name: the node on which each checkpoint was found. */
  private readonly checkpoints = new Map<string, Map<string, string>>();
  private readonly verdict: Verdict;
  private readonly fileOf: (jobName: string) => JobSpecFile | undefined;

  constructor(verdict: Verdict, fileOf: RetryCheck['fileOf']) {
    this.verdict = verdict;
    this.fileOf = fileOf;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  private onEvent({ kind, subject, data }: StoredEvent): void {
    const attempt = `${subject}.${Number(data['attempt'])}`;
    if (kind === 'job.submitted') this.inherit(subject, String(data['requeuedFrom']));
    else if (kind === 'checkpoint.saved')
      this.checkpointsOf(subject).set(String(data['checkpoint']), String(data['node']));
    else if (kind === 'node.joined')
      this.gpuCounts.set(subject, (data['inventory'] as NodeInventory).gpus.length);
    else if (kind === 'node.drained') this.drained.add(subject);
    else if (kind === 'node.undrained') this.drained.delete(subject);
    else if (kind === 'node.silent') this.away.add(subject);
    else if (kind === 'node.online') this.away.delete(subject);
    else if (kind === 'node.changed') this.gpuCounts.set(subject, (data['gpus'] as readonly Gpu[]).length);
    else if (kind === 'attempt.released') this.released.add(attempt);
    else if (kind === 'attempt.running') this.onRunning(subject);
    else if (kind === 'phase.ended' || kind === 'phase.extended') this.excludedNodes.delete(subject);
    else if (kind === 'job.stopping' && !this.released.has(attempt))
      this.onFailedStart(subject, data['cause'] as Cause);
    else if (kind === 'job.stopping') this.onFailedRun(subject, data['cause'] as Cause | null);
    else if (kind === 'attempt.allocated') {
      this.requireOthers(subject, this.fileOf(String(data['name'])), data as unknown as Allocation);
    } else if (kind === 'attempt.ended')
      this.requireRoot(attempt, data['cause'] as Cause | null, data['tasks'] as readonly EndedTask[]);
  }

  private checkpointsOf(job: string): Map<string, string> {
    const known = this.checkpoints.get(job) ?? new Map<string, string>();
    this.checkpoints.set(job, known);
    return known;
  }

  private inherit(job: string, from: string): void {
    this.checkpoints.set(job, new Map(this.checkpoints.get(from)));
  }

  private onFailedStart(job: string, { kind, node, message }: Cause): void {
    if (kind === 'node_lost' || kind === 'cancelled' || kind === 'preempted') return;
    const known = this.excludedNodes.get(job) ?? { nodes: new Set(), isClear: true };
    this.excludedNodes.set(job, known);
    if (node !== null) known.nodes.add(node);
    else if (kind === 'rendezvous_timeout')
      for (const [name] of message.matchAll(/node-\d/g)) known.nodes.add(name);
    else known.isClear = false;
  }

  private onFailedRun(job: string, cause: Cause | null): void {
    if (cause !== null && cause.kind !== 'cancelled' && cause.kind !== 'preempted') this.failing.add(job);
    if (cause?.node == null) return;
    this.failedOn.set(job, (this.failedOn.get(job) ?? new Set()).add(cause.node));
  }

  /** Whatever kept a job from starting is over; one that keeps failing may do without these nodes anyway. */
  private onRunning(job: string): void {
    const nodes = this.excludedNodes.get(job)?.nodes ?? [];
    this.excludedNodes.delete(job);
    if (!this.failing.has(job)) return;
    this.failedOn.set(job, new Set([...(this.failedOn.get(job) ?? []), ...nodes]));
  }

  private requireOthers(job: string, file: JobSpecFile | undefined, { tasks, resume }: Allocation): void {
    const excludedNodes = this.excludedNodes.get(job);
    if (excludedNodes?.isClear !== true || file === undefined) return;
    const { nodes: wanted = 1, gpus = 0 } = file.resources ?? {};
    const least = typeof wanted === 'number' ? wanted : wanted.min;
    const failedOn = this.failedOn.get(job);
    // To do without the only node that has the checkpoint would be to lose the work.
    const isKeptByNode = resume !== null && file.checkpoint?.dir === undefined;
    const home = isKeptByNode ? this.checkpointsOf(job).get(resume.name) : undefined;
    const isExcluded = (name: string) => excludedNodes.nodes.has(name) && name !== home;
    const mayUse = (name: string) =>
      !isExcluded(name) && failedOn?.has(name) !== true && !this.drained.has(name) && !this.away.has(name);
    const others = [...this.gpuCounts].filter(([name, count]) => count >= gpus && mayUse(name));
    const used = tasks.map(({ node }) => node).find(isExcluded);
    this.verdict.require(
      used === undefined || others.length < least,
      'exclusion',
      () => `${job} got ${used}, on which it had failed, and ${others.length} others could take it`,
    );
  }

  private requireRoot(attempt: string, cause: Cause | null, tasks: readonly EndedTask[]): void {
    const named = tasks.find(({ nodeRank }) => nodeRank === cause?.nodeRank);
    if (named?.exit?.failure?.consequence !== true || cause?.kind !== 'exit_code') return;
    const root = tasks.find(({ exit }) => exit?.failure?.consequence === false && exit.exitCode === 1);
    this.verdict.require(root === undefined, 'G7', () => {
      return `${attempt} failed because of rank ${root?.nodeRank}, and its cause names rank ${cause.nodeRank}, which only followed`;
    });
  }
}
