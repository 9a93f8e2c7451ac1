/** The books of a job that is over: nothing negative, and the GPU-seconds that its attempts really held, whatever clocks did. */
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import { clockRateError } from '../clock.ts';
import type { Fact } from '../history.ts';
import type { Verdict } from './verdict.ts';

/** Largest error in milliseconds of how long one attempt ran: its nodes measure it. */
const ranErrorMsMax = 1_000;
/**
 * The same of how long it held its GPUs. How long it ran is exact; when it began is not, if a coordinator that was just started learns of it
 * by a message that has waited in a cut network.
 */
const heldErrorMsMax = 10_000;

interface Held {
  gpus: number;
  /** True time of the allocation. */
  sinceMs: number;
  gpuSeconds: number;
  /** Largest error that is allowed, in GPU-seconds. */
  toleranceGpuSeconds: number;
  attempts: number;
  /** How long the newest attempt ran on its machines, milliseconds. Null if a part of that is unknown. */
  ranMs: number | null;
}

export class LedgerCheck {
  private readonly held = new Map<string, Held>();
  /** Task key → true time of its start. */
  private readonly starts = new Map<string, number>();
  /** Task key → true time of its end. */
  private readonly ends = new Map<string, number>();
  private readonly verdict: Verdict;

  constructor(verdict: Verdict) {
    this.verdict = verdict;
  }

  /** @param nowMs true time, which no process knows */
  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'started') this.starts.set(keyOf(fact.task), nowMs);
    else if (fact.kind === 'ended') this.ends.set(keyOf(fact.task), nowMs);
    else if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event, nowMs);
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
      const { gpuSeconds: held = 0, toleranceGpuSeconds: tolerance = 0 } = this.held.get(id) ?? {};
      const what = () => `${id} has ${booked} GPU-seconds in its ledger, and its attempts held ${held}`;
      this.verdict.require(Math.abs(booked - held) <= tolerance, 'ledger', what);
      if (state === 'succeeded') this.requireRan(id, ledger);
    }
  }

  /** What succeeded at the first attempt was productive for as long as its tasks ran. */
  private requireRan(id: string, ledger: JobView['ledger']): void {
    const { attempts = 0, ranMs = null, gpus = 0 } = this.held.get(id) ?? {};
    if (attempts !== 1 || ranMs === null || gpus === 0) return;
    const productive = ledger.find(({ kind }) => kind === 'productive')?.gpuSeconds ?? 0;
    const errorMs = Math.abs((productive / gpus) * 1_000 - ranMs);
    this.verdict.require(
      errorMs <= ranErrorMsMax + 2 * clockRateError * ranMs,
      'ledger',
      () => `${id} has ${productive} productive GPU-seconds of ${gpus} GPUs, and ran for ${ranMs} ms`,
    );
  }

  private onEvent({ kind, subject, data, timeMs }: StoredEvent, nowMs: number): void {
    if (kind !== 'attempt.allocated' && kind !== 'attempt.ended') return;
    const held = this.held.get(subject) ?? {
      gpus: 0,
      sinceMs: nowMs,
      gpuSeconds: 0,
      toleranceGpuSeconds: 0,
      attempts: 0,
      ranMs: null,
    };
    this.held.set(subject, held);
    const tasks = data['tasks'] as readonly EventTask[];
    if (kind === 'attempt.ended') {
      const untilMs = data['endedAtMs'] as number;
      this.verdict.require(untilMs <= timeMs, 'ledger', () => `${subject} ended after it was known to have`);
      const attempt = data['attempt'] as number;
      const ends = tasks.map(({ nodeRank, exit }) =>
        exit?.finishedAtMs == null
          ? nowMs
          : (this.ends.get(keyOf({ jobId: subject, attempt, nodeRank })) ?? nowMs),
      );
      held.attempts += 1;
      held.ranMs = this.ranMs(subject, attempt, tasks);
      const forMs = Math.max(0, Math.max(...ends) - held.sinceMs);
      held.gpuSeconds += (held.gpus * forMs) / 1_000;
      held.toleranceGpuSeconds += (held.gpus * (heldErrorMsMax + 2 * clockRateError * forMs)) / 1_000;
    }
    held.gpus = tasks.reduce((sum, task) => sum + task.gpuUuids.length, 0);
    held.sinceMs = nowMs;
  }

  /** Returns null if not every end was observed. */
  private ranMs(jobId: string, attempt: number, tasks: readonly EventTask[]): number | null {
    const times = tasks.map(({ nodeRank, exit }) => {
      const key = keyOf({ jobId, attempt, nodeRank });
      const [start, end] = [this.starts.get(key), this.ends.get(key)];
      return start === undefined || end === undefined || exit?.finishedAtMs == null ? null : { start, end };
    });
    const known = times.flatMap((each) => each ?? []);
    if (known.length < times.length) return null;
    return Math.max(...known.map(({ end }) => end)) - Math.max(...known.map(({ start }) => start));
  }
}

interface EventTask {
  readonly nodeRank: number;
  readonly gpuUuids: readonly unknown[];
  readonly exit?: { readonly finishedAtMs: number | null } | null;
}

function keyOf(task: {
  readonly jobId: string;
  readonly attempt: number;
  readonly nodeRank: number;
}): string {
  return `${task.jobId}.${task.attempt}.${task.nodeRank}`;
}
