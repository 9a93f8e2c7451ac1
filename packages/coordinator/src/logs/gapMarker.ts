/** The line that stands in an output where some of it is not there. */
import { outputMark } from '@muster/common/outputMark';
import type { Gap } from './logStore.ts';
import type { LossReason } from './segments.ts';

/** Texts for the reasons, to follow the number of missing bytes. */
export const gapReasons: Readonly<Record<LossReason, string>> = {
  cap: 'dropped: more than the coordinator keeps of one task',
  node: 'dropped: more than its node keeps of one task',
  budget: 'removed: the budget of logs is used up',
  removed: 'removed',
};

/** @returns no more bytes than are missing: it stands in their place */
export function gapMarker(from: number, { to, reason }: Gap): Buffer {
  const missing = to - from;
  const lead = from === 0 ? '' : '\n';
  const text = Buffer.from(`${lead}${outputMark} ${missing} bytes of output were ${gapReasons[reason]}\n`);
  return text.subarray(0, missing);
}
