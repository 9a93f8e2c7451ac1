/**
 * Keeps the health of this node: takes in what others read, and reports what follows. Decides nothing itself, resets no GPU
 * and reboots no node.
 */
import { type Condition, conditionKey } from '@muster/common/conditions';
import type { Logger } from '@muster/common/log';
import type { DirectoryProblem } from '../checkpoints/directoryProblems.ts';
import type { GpuObservation, XidEvent } from '../gpus/gpuSource.ts';
import type { ConditionStore } from './conditionStore.ts';
import type { ConditionTable } from './conditionTable.ts';
import { evaluateConditions, type HealthInput, takeUp, visibleConditions } from './evaluate.ts';
import type { FileSystemFact } from './fileSystems.ts';
import type { HelperFacts } from './helpers.ts';
import { parseKernelText } from './kernelLines.ts';
import type { KernelRecord } from './kernelLog.ts';
import { emptyHealthState, type HealthState, type Moment } from './state.ts';

/** What only moves on (counts, times, evidence) is published and stored this often; what is new, at once. */
const refreshIntervalMs = 60_000;
/**
 * Until the GPUs were listed once, nobody knows which GPU an Xid of the kernel log belongs to. A driver that hangs lists
 * none, and its Xids must be reported anyway.
 */
const waitForGpusMs = 30_000;
const waitingFactsMax = 1_000;

interface WaitingFact {
  readonly sequence: number;
  readonly input: HealthInput;
}

export interface HealthMonitorParts {
  readonly table: ConditionTable;
  readonly store: ConditionStore;
  /** Of this boot: another one ends what a reboot ends. */
  readonly bootId: string;
  readonly now: () => Moment;
  readonly log: Logger;
}

type Listener = (conditions: readonly Condition[]) => void;

export class HealthMonitor {
  private readonly parts: HealthMonitorParts;
  private readonly listeners = new Set<Listener>();
  private state: HealthState;
  private observation: GpuObservation | null = null;
  private kernelSequence: number | null;
  /** Facts of the kernel log from before the GPUs were listed; null: they are. */
  private waiting: WaitingFact[] | null = [];
  private readonly startedAtMs: number;
  private visible: readonly Condition[];
  private loggedAtMs: number;
  private savedAtMs: number;
  private unsaved: 'nothing' | 'details' | 'changes';

  /** Takes up what was stored: `conditions()` is complete from here on. */
  constructor(parts: HealthMonitorParts) {
    this.parts = parts;
    const { table, bootId } = parts;
    const stored = parts.store.load();
    const sameBoot = stored?.state.bootId === bootId;
    this.kernelSequence = sameBoot ? stored.kernelSequence : null;
    this.state = stored === null ? emptyHealthState(bootId) : takeUp(stored.state, bootId, table);
    this.visible = visibleConditions(this.state);
    this.unsaved = sameBoot ? 'nothing' : 'changes';
    const { uptimeMs } = parts.now();
    this.startedAtMs = uptimeMs;
    this.loggedAtMs = uptimeMs;
    this.savedAtMs = uptimeMs;
  }

  /** The gravest first. */
  conditions(): readonly Condition[] {
    return this.visible;
  }

  /** By UUID of the card: the last Xid of this boot. */
  lastXids(): ReadonlyMap<string, number> {
    const known = new Map<string, number>();
    for (const { uuid, lastXid } of this.state.cards.values()) if (lastXid !== null) known.set(uuid, lastXid);
    return known;
  }

  /** Called with all conditions when one comes, ends or changes. @returns takes the listener away again */
  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  observe(observation: GpuObservation): void {
    this.observation = observation;
    this.take({ kind: 'observation' });
    const isListed = observation.gpus.length > 0 || observation.problems.length === 0;
    if (observation.atMs > 0 && isListed) this.takeWaiting();
  }

  xid(event: XidEvent): void {
    this.take({ kind: 'xid', event });
  }

  /** @param history it was in the kernel log before the agent opened it */
  kernelRecord(record: KernelRecord, history: boolean): void {
    // The log is read from its beginning at every start; what an earlier start has seen counts no second time.
    if (this.kernelSequence !== null && record.sequence <= this.kernelSequence) return;
    this.kernelSequence = record.sequence;
    if (!record.fromKernel) return;
    for (const fact of parseKernelText(record.text)) {
      const now = this.parts.now();
      const ageMs = history ? Math.max(0, now.uptimeMs - record.uptimeMs) : 0;
      const at = { wallMs: now.wallMs - ageMs, uptimeMs: now.uptimeMs - ageMs };
      const input: HealthInput = { kind: 'kernel', fact, at, history };
      if (this.waiting === null) this.take(input);
      else this.waiting = [...this.waiting, { sequence: record.sequence, input }].slice(-waitingFactsMax);
    }
  }

  fileSystems(facts: readonly FileSystemFact[]): void {
    this.take({ kind: 'file_systems', facts });
  }

  helpers(facts: HelperFacts): void {
    this.take({ kind: 'helpers', facts });
  }

  /** @param skewMs this node's wall clock less the coordinator's; null: it could not be measured */
  clockSkew(skewMs: number | null): void {
    this.take({ kind: 'clock_skew', skewMs });
  }

  /** @param problem null: nothing is wrong with any checkpoint directory */
  directoryProblem(problem: DirectoryProblem | null): void {
    this.take({ kind: 'checkpoint_directory', problem });
  }

  /** A person has cleared it. What is still so is back with the next reading. @returns whether there was one */
  clear(kind: string, gpuUuid: string | null): boolean {
    const key = conditionKey({ kind, gpuUuid });
    const known = this.visible.some((condition) => conditionKey(condition) === key);
    if (known) this.take({ kind: 'clear', conditionKind: kind, gpuUuid });
    return known;
  }

  /** To be called about once a second: ends what time ends, and stores what is new. */
  tick(): void {
    this.take({ kind: 'tick' });
    const { uptimeMs } = this.parts.now();
    if (uptimeMs - this.startedAtMs >= waitForGpusMs) this.takeWaiting();
    if (uptimeMs - this.loggedAtMs >= refreshIntervalMs) this.publish(uptimeMs);
    const due = this.unsaved === 'changes' || uptimeMs - this.savedAtMs >= refreshIntervalMs;
    if (due && this.unsaved !== 'nothing') this.save(uptimeMs);
  }

  /** Stores what is not stored yet. */
  close(): void {
    this.listeners.clear();
    if (this.unsaved !== 'nothing') this.save(this.parts.now().uptimeMs);
  }

  private takeWaiting(): void {
    const { waiting } = this;
    this.waiting = null;
    for (const { input } of waiting ?? []) this.take(input);
  }

  private take(input: HealthInput): void {
    const { table, now: clock } = this.parts;
    const now = clock();
    const cardsBefore = this.state.cards.size;
    this.state = evaluateConditions(this.state, input, { table, observation: this.observation, now });
    const before = this.visible;
    this.visible = visibleConditions(this.state);
    const isChange = this.logChanges(before, this.visible);
    if (isChange || this.state.cards.size !== cardsBefore) this.unsaved = 'changes';
    else if (input.kind !== 'tick' && this.unsaved === 'nothing') this.unsaved = 'details';
    if (isChange) this.publish(now.uptimeMs);
  }

  /** @returns whether a condition came, ended, or means something else now */
  private logChanges(before: readonly Condition[], after: readonly Condition[]): boolean {
    const meanings = new Map(before.map((condition) => [conditionKey(condition), meaningOf(condition)]));
    let isChange = false;
    for (const condition of after) {
      const key = conditionKey(condition);
      const known = meanings.get(key);
      meanings.delete(key);
      if (known === meaningOf(condition)) continue;
      isChange = true;
      this.parts.log.warn(fieldsOf(condition), condition.message);
    }
    for (const condition of before) {
      if (!meanings.has(conditionKey(condition))) continue;
      isChange = true;
      this.parts.log.info(fieldsOf(condition), `over: ${condition.message}`);
    }
    return isChange;
  }

  private publish(uptimeMs: number): void {
    this.loggedAtMs = uptimeMs;
    for (const listener of Array.from(this.listeners)) listener(this.visible);
  }

  private save(uptimeMs: number): void {
    this.savedAtMs = uptimeMs;
    const { state } = this;
    // What still waits has to be read again by the next start.
    const [oldest] = this.waiting ?? [];
    const kernelSequence = oldest === undefined ? this.kernelSequence : oldest.sequence - 1;
    // A disk that cannot be written to is tried again at the pace of details, not each second.
    this.unsaved = this.parts.store.save({ state, kernelSequence }) ? 'nothing' : 'details';
  }
}

function meaningOf({ severity, action, clears, task }: Condition): string {
  return JSON.stringify([severity, action, clears, task]);
}

function fieldsOf({ kind, gpuUuid, severity, action, evidence, task }: Condition): object {
  return { kind, gpuUuid, severity, action, evidence, task };
}
