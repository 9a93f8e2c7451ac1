/**
 * The wall clock that the coordinator decides by: what expires, is removed or is due. `clockState.ts` decides which time is
 * trusted; this class reads the clocks, keeps the state over restarts, and reports steps of the system clock.
 */
import type { Clock } from '@muster/common/clock';
import type { ClockView } from '@muster/common/clockView';
import { MusterError, messageOf } from '@muster/common/errors';
import { clusterSubject, type NewEvent } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type Caller, coordinatorPart } from '../caller.ts';
import { type MetaStore, type MetaStoreParts, metaStore } from '../leases/metaStore.ts';
import type { Loop } from '../loop.ts';
import { moveMoments } from '../state/moveMoments.ts';
import type { ClusterState } from '../state/state.ts';
import { AgentClocks } from './agentClocks.ts';
import {
  acceptedClock,
  type ClockOutcome,
  type ClockReading,
  type ClockState,
  type ClockStep,
  type ClockWitnesses,
  firstClock,
  later,
  movesFrom,
  needsWitnesses,
  readClock,
  resumedClock,
} from './clockState.ts';
import type { MachineClock } from './kernelClock.ts';

export type { MachineClock } from './kernelClock.ts';

const caller = coordinatorPart('clock');
const clockMeta = 'clock';
const agentClocksMeta = 'agent_clocks';
/** After a power cut at most this much less than the real time is trusted, until the gap is confirmed. */
const storedEveryMs = 60_000;
/** The monotonic clock does not count while the machine sleeps; BOOTTIME does not. Its readings are rounded to 10 ms. */
const sleptMsMin = 1_000;
/** A first clock that nothing has confirmed is not worth asking the kernel every second. */
const askedEveryMs = 600_000;

export interface TrustedClockParts {
  readonly store: MetaStore;
  /** The system's clocks. */
  readonly clock: Clock;
  /** Null: the system clock is trusted as it is. */
  readonly machineClock: MachineClock | null;
  /** Number of the newest event. A store without a clock of its own is at least as late as that event. */
  readonly lastEventSeq: number;
  readonly log: Logger;
}

export interface TrustedClockPorts extends Pick<TrustedClockParts, 'clock' | 'machineClock' | 'log'> {
  readonly store: MetaStoreParts['store'];
  readonly state: Pick<ClusterState, 'lastEventSeq'>;
  readonly onFatal: MetaStoreParts['onFatal'];
}

/** @throws {StoreError} when the store cannot be read or written */
export function openTrustedClock(ports: TrustedClockPorts): Promise<TrustedClock> {
  const { state, store, onFatal } = ports;
  return TrustedClock.open({
    ...ports,
    store: metaStore({ store, onFatal }),
    lastEventSeq: state.lastEventSeq,
  });
}

interface Stored extends ClockState {
  readonly isReported: boolean;
}

/** What has become of the clock and was not yet stored as an event. */
type ClockChange =
  | { readonly kind: 'stepped'; readonly byMs: number }
  | { readonly kind: 'settled'; readonly outcome: ClockOutcome; readonly step: ClockStep | null };

export class TrustedClock implements Clock {
  private readonly parts: TrustedClockParts;
  private readonly agents: AgentClocks;
  private state: ClockState;
  /** Trusted time and monotonic time of the last reading. */
  private base: { readonly wallMs: number; readonly monoMs: number };
  /** CLOCK_BOOTTIME less the monotonic clock. */
  private boottimeOffsetMs: number;
  private witnesses: ClockWitnesses = { isSynchronised: null, agentsWallMs: null };
  private askedAtMonoMs = Number.NEGATIVE_INFINITY;
  private storedAtMonoMs = Number.NEGATIVE_INFINITY;
  private isReported: boolean;
  private changes: ClockChange[] = [];
  /** Called when the clock was set, with the milliseconds. */
  onSet: (byMs: number) => void = () => {};

  private constructor(parts: TrustedClockParts, stored: Stored | null, agents: AgentClocks) {
    this.parts = parts;
    this.agents = agents;
    this.boottimeOffsetMs = (parts.machineClock?.boottimeMs() ?? 0) - parts.clock.monotonicMs();
    const reading = this.reading();
    this.state = stored === null ? firstClock(reading) : resumedClock(stored, reading);
    this.isReported = stored?.isReported ?? false;
    this.base = { wallMs: this.state.trustedWallMs, monoMs: parts.clock.monotonicMs() };
  }

  /** Continues the time of the run before. Nothing is decided before this has resolved. */
  static async open(parts: TrustedClockParts): Promise<TrustedClock> {
    const text = await parts.store.readMeta(clockMeta);
    const agents = await parts.store.readMeta(agentClocksMeta);
    const stored = text === null ? await earlierClock(parts) : (JSON.parse(text) as Stored);
    const known = agents === null ? undefined : (JSON.parse(agents) as never);
    const opened = new TrustedClock(parts, stored, new AgentClocks(known));
    const settled = await opened.look();
    if (settled !== null) opened.settle(settled);
    await opened.store();
    return opened;
  }

  /** The trusted wall-clock time, milliseconds since 1970. */
  readonly wallMs = (): number => {
    const { clock, machineClock } = this.parts;
    if (machineClock === null) return clock.wallMs();
    return Math.floor(this.base.wallMs + clock.monotonicMs() - this.base.monoMs);
  };

  readonly monotonicMs = (): number => this.parts.clock.monotonicMs();

  /** The wall clock of the machine, right or wrong. */
  readonly systemWallMs = (): number => this.parts.clock.wallMs();

  /** The step that nothing has confirmed yet. Null while the system clock is trusted. */
  get step(): ClockStep | null {
    return this.state.step;
  }

  /** False while the time is in doubt: nothing may then be removed, expire or be charged because of it. */
  readonly isCertain = (): boolean => this.state.step === null;

  /** Monotonic milliseconds counted in all runs of coordinators of this store, without the time between two boots. */
  readonly countedMs = (): number =>
    this.parts.machineClock === null
      ? this.parts.clock.monotonicMs()
      : this.state.countedMs + this.parts.clock.monotonicMs() - this.base.monoMs;

  /** Notes the BOOTTIME of a node, as it sent it. */
  noteAgent(node: NodeName, bootId: string, boottimeMs: number): void {
    if (this.parts.machineClock === null) return;
    const now = { trustedWallMs: this.wallMs(), monotonicMs: this.monotonicMs() };
    this.agents.note(node, { bootId, boottimeMs }, now, this.isCertain());
  }

  /** When this boot of a node began, in trusted time, as an earlier run has learned it too. Null if that is unknown. */
  agentStartedWallMs(node: NodeName, bootId: string): number | null {
    return this.agents.startedWallMs(node, bootId);
  }

  /** Forgets the clocks of removed nodes. */
  committed({ removedNodes }: { readonly removedNodes: readonly NodeName[] }): void {
    for (const node of removedNodes) this.agents.removed(node);
  }

  /** One pass: reads the clocks, and stores and reports what has changed. */
  async run(loop: Pick<Loop, 'run'>): Promise<void> {
    if (this.parts.machineClock === null) return;
    const settled = await this.look();
    if (settled !== null) await this.set(settled, loop, caller);
    await this.report(loop, caller);
    if (this.monotonicMs() - this.storedAtMonoMs >= storedEveryMs) await this.store();
  }

  /**
   * Takes an admin's word that the system clock is right.
   * @throws {MusterError} `failed_precondition` if it has not been stepped
   */
  async accept(loop: Pick<Loop, 'run'>, by: Caller): Promise<void> {
    if (this.state.step === null)
      throw new MusterError(
        'failed_precondition',
        'the system clock has not been stepped, so there is nothing to accept',
      );
    await this.set(acceptedClock(this.state, this.reading()), loop, by);
    await this.report(loop, by);
  }

  view(): ClockView {
    const { state, witnesses } = this;
    return {
      systemWallMs: Math.floor(this.systemWallMs()),
      trustedWallMs: this.wallMs(),
      basis: state.basis,
      isSynchronised: witnesses.isSynchronised,
      agentsWallMs: witnesses.agentsWallMs === null ? null : Math.floor(witnesses.agentsWallMs),
      steppedSinceMs: state.step === null ? null : Math.floor(state.step.sinceWallMs),
    };
  }

  /** Stores the time, so that the next run continues from here. */
  async close(): Promise<void> {
    if (this.parts.machineClock === null) return;
    // What would be settled now is settled by the next run.
    await this.look();
    await this.store();
  }

  private reading(): ClockReading {
    const { clock, machineClock } = this.parts;
    const monoMs = clock.monotonicMs();
    const boottimeMs = machineClock?.boottimeMs() ?? monoMs;
    if (Math.abs(boottimeMs - monoMs - this.boottimeOffsetMs) > sleptMsMin)
      this.boottimeOffsetMs = boottimeMs - monoMs;
    return {
      bootId: machineClock?.bootId() ?? null,
      boottimeMs: monoMs + this.boottimeOffsetMs,
      systemWallMs: clock.wallMs(),
    };
  }

  /** @returns how a step was settled, or a gap confirmed. Nothing of that is kept yet. Null otherwise */
  private async look(): Promise<ClockOutcome | null> {
    if (this.parts.machineClock === null) return null;
    await this.ask();
    const reading = this.reading();
    const before = this.state;
    const outcome = readClock(before, reading, this.witnesses);
    if (outcome.settledBy !== null) return outcome;
    this.keep(outcome.state);
    const { step } = outcome.state;
    if (step !== null && before.step === null) {
      this.isReported = false;
      this.parts.log.warn(
        { byMs: Math.round(step.firstByMs) },
        'the system clock was stepped and nothing confirms it: nothing is removed and nothing expires until it is settled',
      );
    }
    if (step !== null && !this.isReported && !this.changes.some(({ kind }) => kind === 'stepped'))
      this.changes.push({ kind: 'stepped', byMs: reading.systemWallMs - outcome.state.trustedWallMs });
    return null;
  }

  /**
   * Settles a step. When the clock is set, what has not ended moves along with it in one commit, so that nothing becomes longer or
   * shorter by that.
   */
  private async set(outcome: ClockOutcome, loop: Pick<Loop, 'run'>, by: Caller): Promise<void> {
    const { setByMs } = outcome;
    const readAtMonoMs = this.monotonicMs();
    if (setByMs !== 0) {
      const fromMs = movesFrom(this.state, setByMs);
      await loop.run(by, (draft) => moveMoments(draft, { byMs: setByMs, fromMs }));
    }
    this.settle({ ...outcome, state: later(outcome.state, this.monotonicMs() - readAtMonoMs) });
  }

  private async ask(): Promise<void> {
    const { machineClock } = this.parts;
    const monoMs = this.monotonicMs();
    const agentsWallMs = this.agents.medianWallMs(monoMs);
    if (machineClock === null || !needsWitnesses(this.state, this.reading())) {
      this.witnesses = { isSynchronised: null, agentsWallMs };
      return;
    }
    const isNear = !needsWitnesses({ ...this.state, basis: 'crossed' }, this.reading());
    if (isNear && monoMs - this.askedAtMonoMs < askedEveryMs) {
      this.witnesses = { isSynchronised: null, agentsWallMs };
      return;
    }
    this.askedAtMonoMs = monoMs;
    this.witnesses = { isSynchronised: await machineClock.isSynchronised(), agentsWallMs };
  }

  private settle(outcome: ClockOutcome): void {
    const { step } = this.state;
    this.keep(outcome.state);
    // What was learned of agents was learned by the time before.
    if (outcome.setByMs !== 0) {
      this.agents.forget();
      this.onSet(outcome.setByMs);
    }
    this.changes.push({ kind: 'settled', outcome, step });
    this.parts.log.info(
      { by: outcome.settledBy, setByMs: Math.round(outcome.setByMs) },
      outcome.setByMs === 0 ? 'the system clock agrees again' : 'the clock was set to the system clock',
    );
  }

  private keep(state: ClockState): void {
    this.state = state;
    this.base = { wallMs: state.trustedWallMs, monoMs: this.parts.clock.monotonicMs() };
  }

  private async report(loop: Pick<Loop, 'run'>, by: Caller): Promise<void> {
    if (this.changes.length === 0) return;
    const changes = this.changes;
    this.changes = [];
    try {
      await loop.run(by, (draft, nowMs) => {
        for (const each of changes) draft.emit(eventOf(each), nowMs);
      });
    } catch (error) {
      this.changes.unshift(...changes);
      throw error;
    }
    this.isReported = this.state.step !== null;
    await this.store();
  }

  private async store(): Promise<void> {
    const { store, machineClock, log } = this.parts;
    if (machineClock === null) return;
    this.storedAtMonoMs = this.monotonicMs();
    const stored: Stored = { ...this.state, isReported: this.isReported };
    try {
      await store.writeMeta(clockMeta, JSON.stringify(stored));
      const agents = this.agents.takeChanges();
      if (agents !== null) await store.writeMeta(agentClocksMeta, agents);
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the time could not be stored, trying again in a minute');
    }
  }
}

function eventOf(change: ClockChange): NewEvent {
  if (change.kind === 'stepped')
    return { kind: 'clock.stepped', subject: clusterSubject, data: { byMs: Math.round(change.byMs) } };
  const { outcome, step } = change;
  const { settledBy, setByMs, state } = outcome;
  const forMs = step === null ? 0 : Math.max(0, state.trustedWallMs - setByMs - step.sinceWallMs);
  const data = { by: settledBy ?? 'agreement', setByMs: Math.round(setByMs), forMs: Math.round(forMs) };
  return { kind: 'clock.settled', subject: clusterSubject, data };
}

/** The clock of a store of an earlier version, which has kept none: it was at least as late as its newest event. */
async function earlierClock({ store, lastEventSeq }: TrustedClockParts): Promise<Stored | null> {
  if (lastEventSeq === 0) return null;
  const [newest] = await store.readEvents(lastEventSeq - 1, 1, null);
  if (newest === undefined) return null;
  return {
    bootId: null,
    boottimeMs: 0,
    trustedWallMs: newest.timeMs,
    countedMs: 0,
    basis: 'crossed',
    step: null,
    isReported: false,
  };
}
