/** The books of a job that is over: nothing negative, and every GPU-second of its attempts once. */
import { isTerminal } from '@muster/common/states';
import type { AttemptView, JobView } from '@muster/common/views';
import type { Verdict } from './verdict.ts';

/** Of sums of fractions. */
const roundingS = 0.01;

export function checkLedgers(jobs: readonly JobView[], verdict: Verdict): void {
  for (const { id, state, ledger, attempts } of jobs) {
    for (const { kind, gpuSeconds } of ledger)
      verdict.require(gpuSeconds >= 0, 'ledger', () => `${id} has ${gpuSeconds} GPU-seconds of ${kind}`);
    if (!isTerminal(state)) continue;
    const booked = ledger
      .filter(({ kind }) => kind !== 'queued')
      .reduce((sum, { gpuSeconds }) => sum + gpuSeconds, 0);
    const held = attempts.reduce((sum, attempt) => sum + heldBy(attempt), 0);
    const what = () => `${id} has ${booked} GPU-seconds in its ledger, and its attempts held ${held}`;
    verdict.require(Math.abs(booked - held) <= roundingS, 'ledger', what);
  }
}

function heldBy({ tasks, allocatedAtMs, endedAtMs }: AttemptView): number {
  const gpus = tasks.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0);
  return (gpus * Math.max(0, (endedAtMs ?? allocatedAtMs) - allocatedAtMs)) / 1_000;
}
