/**
 * Checks what a failed attempt leads to, on the event log. G7 of docs/guarantees.md: when several ranks of a gang have
 * failed, the cause is the rank that failed first. `exclusion`: a node on which an attempt failed before its release is
 * excluded from the next attempt, where other nodes could run it.
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

interface LeftOut {
  readonly nodes: Set<string>;
  /** More nodes than the log names may be left out. */
  isClear: boolean;
}

export class RetryCheck {
  private readonly released = new Set<string>();
  private readonly leftOut = new Map<string, LeftOut>();
  /** Nodes on which an attempt failed while it ran: the next one may do without them, too. By job. */
  private readonly failedOn = new Map<string, Set<string>>();
  /** A person's word that they get no new work. */
  private readonly drained = new Set<string>();
  /** Silent nodes: a job that has waited long does not go by them, because they may never return. */
  private readonly away = new Set<string>();
  private readonly gpuCounts = new Map<string, number>();
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
    if (kind === 'node.joined') this.gpuCounts.set(subject, (data['inventory'] as NodeInventory).gpus.length);
    else if (kind === 'node.drained') this.drained.add(subject);
    else if (kind === 'node.undrained') this.drained.delete(subject);
    else if (kind === 'node.silent') this.away.add(subject);
    else if (kind === 'node.online') this.away.delete(subject);
    else if (kind === 'node.changed') this.gpuCounts.set(subject, (data['gpus'] as readonly Gpu[]).length);
    else if (kind === 'attempt.released') this.released.add(attempt);
    else if (kind === 'attempt.running') this.leftOut.delete(subject);
    else if (kind === 'job.stopping' && !this.released.has(attempt))
      this.onFailedStart(subject, data['cause'] as Cause);
    else if (kind === 'job.stopping') this.onFailedRun(subject, data['cause'] as Cause | null);
    else if (kind === 'attempt.allocated') {
      const nodes = (data['tasks'] as { node: string }[]).map(({ node }) => node);
      this.requireOthers(subject, this.fileOf(String(data['name'])), nodes);
    } else if (kind === 'attempt.ended')
      this.requireRoot(attempt, data['cause'] as Cause | null, data['tasks'] as readonly EndedTask[]);
  }

  private onFailedStart(job: string, { kind, node, message }: Cause): void {
    if (kind === 'node_lost' || kind === 'cancelled' || kind === 'preempted') return;
    const known = this.leftOut.get(job) ?? { nodes: new Set(), isClear: true };
    this.leftOut.set(job, known);
    if (node !== null) known.nodes.add(node);
    else if (kind === 'rendezvous_timeout')
      for (const [name] of message.matchAll(/node-\d/g)) known.nodes.add(name);
    else known.isClear = false;
  }

  private onFailedRun(job: string, cause: Cause | null): void {
    if (cause?.node == null) return;
    this.failedOn.set(job, (this.failedOn.get(job) ?? new Set()).add(cause.node));
  }

  private requireOthers(job: string, file: JobSpecFile | undefined, nodes: readonly string[]): void {
    const leftOut = this.leftOut.get(job);
    if (leftOut?.isClear !== true || file === undefined) return;
    const { nodes: wanted = 1, gpus = 0 } = file.resources ?? {};
    const least = typeof wanted === 'number' ? wanted : wanted.min;
    const failedOn = this.failedOn.get(job);
    const mayUse = (name: string) =>
      !leftOut.nodes.has(name) &&
      failedOn?.has(name) !== true &&
      !this.drained.has(name) &&
      !this.away.has(name);
    const others = [...this.gpuCounts].filter(([name, count]) => count >= gpus && mayUse(name));
    const used = nodes.find((name) => leftOut.nodes.has(name));
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
