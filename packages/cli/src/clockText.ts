/** The clocks of the coordinator, in words. Pure. */
import type { ClockView } from '@muster/common/clockView';
import { durationText } from './output/times.ts';

/** Differences below this are shown as none: the answer took some time too. */
const shownMsMin = 1_000;

const basisTexts: Readonly<Record<ClockView['basis'], string>> = {
  first: 'the system clock at the first start, which nothing has confirmed yet',
  crossed: 'the last run of the coordinator; the time that passed over a reboot or a move is unknown',
  confirmed: 'CLOCK_BOOTTIME, which no change of the system clock moves',
};

export function clocksText(clock: ClockView, programName: string): string {
  const { systemWallMs, trustedWallMs, steppedSinceMs } = clock;
  const rows = [
    ['System clock', isoText(systemWallMs)],
    ['Trusted clock', isoText(trustedWallMs)],
    ['Difference', differenceText(systemWallMs - trustedWallMs)],
    ['Source', basisTexts[clock.basis]],
    ['Kernel', kernelText(clock.isSynchronised)],
    ['Agents', agentsText(clock)],
    ['Stepped', steppedSinceMs === null ? 'no' : `since ${isoText(steppedSinceMs)} of the trusted clock`],
  ] as const;
  const table = rows.map(([name, text]) => `${name.padEnd(15)}${text}\n`).join('');
  return steppedSinceMs === null
    ? table
    : `${table}Nothing is removed and no credential of a node expires until both clocks agree. If the system clock is right: ` +
        `${programName} clock accept\n`;
}

function isoText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function differenceText(byMs: number): string {
  if (Math.abs(byMs) < shownMsMin) return 'none';
  return `the system clock is ${durationText(Math.abs(byMs))} ${byMs < 0 ? 'behind' : 'ahead'}`;
}

function kernelText(isSynchronised: boolean | null): string {
  if (isSynchronised === null) return 'was not asked';
  return isSynchronised ? 'says that its clock is synchronised' : 'says that its clock is not synchronised';
}

function agentsText({ agentsWallMs, trustedWallMs }: ClockView): string {
  if (agentsWallMs === null) return 'none that was heard before and has stayed up';
  const byMs = agentsWallMs - trustedWallMs;
  if (Math.abs(byMs) < shownMsMin) return 'agree with the trusted clock';
  return `are ${durationText(Math.abs(byMs))} ${byMs < 0 ? 'behind' : 'ahead of'} the trusted clock (median)`;
}
