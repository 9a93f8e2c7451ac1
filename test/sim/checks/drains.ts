/**
 * Checks conditions and what follows from them, on the event log. Each condition that is raised was true of its machine
 * (G7 of docs/guarantees.md), and is raised before it changes or clears (G5). While it drains a GPU or a node, nothing new
 * is started there. Nothing is started on a GPU that its machine does not have.
 */
import type { Condition } from '@muster/common/conditions';
import type { Gpu, NodeInventory } from '@muster/common/hardware';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

type Reported = Pick<Condition, 'kind' | 'gpuUuid' | 'action'>;

/** So many changes of a node are reported at once by one run of the coordinator; those after them may be held back for a while. */
const changesAtOnce = 8;
/** What a coordinator has heard, it goes by within so long, on a slow disk as well. */
const takenWithinMs = 5_000;

interface KnownNode {
  readonly conditions: Map<string, Reported>;
  gpuUuids: ReadonlySet<string>;
  /** As this run of the coordinator has reported them. */
  changes: number;
}

/** The GPUs that a machine has reported. */
interface Heard {
  readonly gpuUuids: ReadonlySet<string>;
  /** Until its next report. */
  untilMs: number;
}

export class DrainCheck {
  /** `<machine> <condition> <GPU>` of all that was ever wrong. */
  private readonly truths = new Set<string>();
  /** As the log tells it. */
  private readonly nodes = new Map<string, KnownNode>();
  /** By machine, oldest first: the last report at some time that still counts. */
  private readonly heard = new Map<string, readonly Heard[]>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'condition' && fact.what === 'raised') {
      this.truths.add(`${fact.machine} ${fact.condition} ${fact.gpuUuid}`);
    } else if (fact.kind === 'clearAnswered') {
      const { node, condition, gpuUuid, holds } = fact;
      const what = () => `${condition} of ${gpuUuid} on ${node} was answered as cleared, and holds`;
      this.verdict.require(!holds, 'G7', what);
    } else if (fact.kind === 'gpusHeard') this.onHeard(fact.machine, fact.gpuUuids, nowMs);
    else if (fact.kind === 'process' && fact.what === 'started' && fact.name.startsWith('coordinator ')) {
      for (const known of this.nodes.values()) known.changes = 0;
    } else if (fact.kind === 'committed') {
      for (const event of fact.events) this.onEvent(event, nowMs);
    }
  }

  private onHeard(machine: string, gpuUuids: readonly string[], nowMs: number): void {
    const before = (this.heard.get(machine) ?? []).map((each) => ({
      ...each,
      untilMs: Math.min(each.untilMs, nowMs),
    }));
    const counting = before.filter(({ untilMs }) => untilMs + takenWithinMs >= nowMs);
    this.heard.set(machine, [
      ...counting,
      { gpuUuids: new Set(gpuUuids), untilMs: Number.POSITIVE_INFINITY },
    ]);
  }

  private onEvent({ kind, subject, data, seq }: StoredEvent, nowMs: number): void {
    const known = this.nodes.get(subject);
    if (kind === 'node.joined') {
      const { gpus } = data['inventory'] as NodeInventory;
      this.nodes.set(subject, { conditions: new Map(), gpuUuids: uuidsOf(gpus), changes: 0 });
    } else if (kind === 'node.changed' && known !== undefined) {
      known.gpuUuids = uuidsOf(data['gpus'] as readonly Gpu[]);
      known.changes += 1;
    } else if (kind.startsWith('condition.')) {
      this.onCondition(kind, subject, data as unknown as Reported, seq);
    } else if (kind === 'attempt.allocated') {
      for (const task of data['tasks'] as { node: string; gpuUuids: readonly string[] }[]) {
        this.onAllocated(subject, task, nowMs);
      }
    }
  }

  private onCondition(kind: string, node: string, reported: Reported, seq: number): void {
    const key = `${reported.kind} ${reported.gpuUuid}`;
    const conditions = this.nodes.get(node)?.conditions;
    const what = () => `${kind} (${seq}) of ${node} ${key} does not follow from what was reported before`;
    this.verdict.require(conditions?.has(key) === (kind !== 'condition.raised'), 'G5', what);
    const isTrue = this.truths.has(`${node} ${key}`);
    this.verdict.require(isTrue, 'G7', () => `${kind} (${seq}) shows ${key} of ${node}, which never was`);
    if (kind === 'condition.cleared') conditions?.delete(key);
    else conditions?.set(key, reported);
  }

  private onAllocated(
    job: string,
    { node, gpuUuids }: { readonly node: string; readonly gpuUuids: readonly string[] },
    nowMs: number,
  ): void {
    const known = this.nodes.get(node);
    const reported = [...(known?.conditions.values() ?? [])];
    const must = (holds: boolean, what: string) =>
      this.verdict.require(holds, 'drains', () => `${job} was given ${what}`);
    must(!reported.some(({ action }) => action === 'drain_node'), `${node}, which is drained`);
    for (const uuid of gpuUuids) {
      const isDrained = reported.some(({ action, gpuUuid }) => action === 'drain_gpu' && gpuUuid === uuid);
      must(!isDrained, `${uuid}, which is drained`);
      must(this.hasGpu(node, uuid, nowMs), `${uuid}, which ${node} does not have now`);
    }
  }

  /** By the log. Of a node that changes so often that events may be held back, by what the coordinator has heard of it. */
  private hasGpu(node: string, uuid: string, nowMs: number): boolean {
    const known = this.nodes.get(node);
    if (known === undefined || known.changes < changesAtOnce) return known?.gpuUuids.has(uuid) === true;
    return (this.heard.get(node) ?? []).some(
      ({ gpuUuids, untilMs }) => untilMs + takenWithinMs >= nowMs && gpuUuids.has(uuid),
    );
  }
}

function uuidsOf(gpus: readonly Gpu[]): ReadonlySet<string> {
  return new Set(gpus.map(({ uuid }) => uuid));
}
