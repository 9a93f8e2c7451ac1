/**
 * What is not well with a machine, and which of its GPUs its driver sees: the truth that its agents report. It outlives
 * agents and reboots.
 */
import type { Condition } from '@muster/common/conditions';
import { conditionKey } from '@muster/common/conditions';
import type { Gpu } from '@muster/common/hardware';
import type { History } from './history.ts';

type Place = Pick<Condition, 'kind' | 'gpuUuid'>;

export class Health {
  /** One of its GPUs was out of sight once: what the coordinator heard last of the machine may be without it. */
  everIncomplete = false;
  /** Something was wrong with it once. */
  everIll = false;
  /** Of the agent that looks now. */
  onChange: () => void = () => {};
  private readonly machine: string;
  private readonly allGpus: readonly Gpu[];
  private readonly history: History;
  private readonly held = new Map<string, Condition>();
  private readonly missing = new Set<string>();

  constructor(machine: string, gpus: readonly Gpu[], history: History) {
    this.machine = machine;
    this.allGpus = gpus;
    this.history = history;
  }

  get gpus(): readonly Gpu[] {
    return this.allGpus.filter(({ uuid }) => !this.missing.has(uuid));
  }

  get conditions(): readonly Condition[] {
    return [...this.held.values()];
  }

  raise(condition: Pick<Condition, 'kind' | 'gpuUuid' | 'action' | 'clears'>): void {
    const key = conditionKey(condition);
    if (this.held.has(key)) return;
    this.held.set(key, {
      ...condition,
      severity: 'critical',
      message: `${key} is simulated`,
      evidence: key,
      task: null,
      sinceMs: 0,
      lastSeenAtMs: 0,
      count: 1,
    });
    this.changed('raised', condition);
  }

  /** What was read is well again. Only a condition that ends by that ends. */
  recover(place: Place): void {
    if (this.held.get(conditionKey(place))?.clears === 'when_gone') this.end(place);
  }

  clearByHand(place: Place): void {
    if (this.held.get(conditionKey(place))?.clears === 'by_hand') this.end(place);
  }

  /** A GPU has fallen off the bus, or is back. */
  setMissing(gpuUuid: string, isMissing: boolean): void {
    if (isMissing === this.missing.has(gpuUuid)) return;
    if (isMissing) this.missing.add(gpuUuid);
    else this.missing.delete(gpuUuid);
    this.everIncomplete = true;
    this.changed(isMissing ? 'raised' : 'cleared', { kind: 'gpu_missing', gpuUuid });
  }

  /** Everything was seen once more: nothing that anybody has to know. */
  seeAgain(nowMs: number): void {
    for (const [key, condition] of this.held) {
      this.held.set(key, { ...condition, count: condition.count + 1, lastSeenAtMs: nowMs });
    }
  }

  heal(): void {
    for (const condition of this.conditions) this.recover(condition);
    for (const gpuUuid of Array.from(this.missing)) this.setMissing(gpuUuid, false);
  }

  private end(place: Place): void {
    this.held.delete(conditionKey(place));
    this.changed('cleared', place);
  }

  private changed(what: 'raised' | 'cleared', { kind: condition, gpuUuid }: Place): void {
    this.everIll = true;
    this.history.add({ kind: 'condition', machine: this.machine, what, condition, gpuUuid });
    this.onChange();
  }
}
