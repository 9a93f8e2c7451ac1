/** The books of a job that is over: nothing negative, and every GPU-second of its attempts once. */
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

/** Of sums of fractions. */
const roundingS = 0.01;

interface Held {
  gpus: number;
  /** Wall clock, as is everything in the books. */
  sinceMs: number;
  gpuSeconds: number;
}

export class LedgerCheck {
  private readonly held = new Map<string, Held>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  see(fact: Fact): void {
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event);
  }

  /** @param jobs when all is over */
  requireSums(jobs: readonly JobView[]): void {
    for (const { id, state, ledger } of jobs) {
      for (const { kind, gpuSeconds } of ledger)
        this.verdict.require(
          gpuSeconds >= 0,
          'ledger',
          () => `${id} has ${gpuSeconds} GPU-seconds of ${kind}`,
        );
      if (!isTerminal(state)) continue;
      const booked = ledger
        .filter(({ kind }) => kind !== 'queued')
        .reduce((sum, { gpuSeconds }) => sum + gpuSeconds, 0);
      const held = this.held.get(id)?.gpuSeconds ?? 0;
      const what = () => `${id} has ${booked} GPU-seconds in its ledger, and its attempts held ${held}`;
      this.verdict.require(Math.abs(booked - held) <= roundingS, 'ledger', what);
    }
  }

  private onEvent({ kind, subject, data, timeMs }: StoredEvent): void {
    if (kind !== 'attempt.allocated' && kind !== 'attempt.ended') return;
    const held = this.held.get(subject) ?? { gpus: 0, sinceMs: timeMs, gpuSeconds: 0 };
    this.held.set(subject, held);
    if (kind === 'attempt.ended') {
      const untilMs = data['endedAtMs'] as number;
      this.verdict.require(untilMs <= timeMs, 'ledger', () => `${subject} ended after it was known to have`);
      held.gpuSeconds += (held.gpus * Math.max(0, untilMs - held.sinceMs)) / 1_000;
    }
    held.gpus = (data['tasks'] as { gpuUuids: unknown[] }[]).reduce(
      (sum, task) => sum + task.gpuUuids.length,
      0,
    );
    held.sinceMs = timeMs;
  }
}
