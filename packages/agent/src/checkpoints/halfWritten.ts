/**
 * Whether a checkpoint that was saved again under its name is half of the old one and half of the new one. A program that opens its
 * file without emptying it and dies in the middle leaves such a file; where the format keeps no sums, reading it shows nothing. Pure.
 */
import type { Verification } from '@muster/checkpoints/verification';
import type { IndexedCheckpoint } from './indexFile.ts';

/** Formats with sums over their contents: reading them to the last byte shows that they are mixed. */
const summed: readonly string[] = ['torch', 'lightning', 'json'];

interface End {
  readonly inode: string;
  readonly head: string;
  readonly end: string;
}

/**
 * @param before what an agent has verified under this name. null: nothing
 * @returns true if a file of it was written in place, and its end is the one that it had before. Nothing can be told of a program
 *   whose files end alike each time, as two versions that were verified have shown (`endsStay`)
 */
function isHalfWritten(
  before: Pick<IndexedCheckpoint, 'ends' | 'endsStay'> | null,
  { format, ends: endsNow }: Pick<Verification, 'format' | 'ends'>,
): boolean {
  if (before?.endsStay === true || summed.includes(format)) return false;
  return pairs(before?.ends, endsNow).some(
    ([was, now]) => was.inode === now.inode && was.head !== now.head && was.end === now.end,
  );
}

/**
 * Why a checkpoint that differs from what was verified is not used although reading it has shown no damage.
 * @param filesBefore it was verified with so many files. 0: unknown
 * @returns a sentence for people. null: nothing is against it
 */
export function doubtAbout(
  before: Pick<IndexedCheckpoint, 'ends' | 'endsStay'> | null,
  filesBefore: number,
  found: Pick<Verification, 'format' | 'ends' | 'files'>,
): string | null {
  if (found.files < filesBefore)
    return `it has ${found.files} of the ${filesBefore} files that were verified`;
  if (!isHalfWritten(before, found)) return null;
  return 'its end is still that of the version before: it was being written over';
}

/**
 * What the index keeps of the ends of a checkpoint that was just verified.
 * @param before what was known under its name. null: nothing
 */
export function endsOf(
  before: Pick<IndexedCheckpoint, 'ends' | 'endsStay'> | null,
  { verdict, ends }: Pick<Verification, 'verdict' | 'ends'>,
): Pick<IndexedCheckpoint, 'ends' | 'endsStay'> {
  if (ends === undefined) return {};
  const isAlike = pairs(before?.ends, ends).some(
    ([was, now]) => was.head !== now.head && was.end === now.end,
  );
  const stay = verdict === 'verified' && (before?.endsStay === true || isAlike);
  return stay ? { ends, endsStay: true } : { ends };
}

function pairs(
  before: readonly string[] = [],
  now: readonly string[] = [],
): readonly (readonly [End, End])[] {
  if (before.length !== now.length) return [];
  return before.map((each, at) => [endOf(each), endOf(now[at] ?? '')] as const);
}

function endOf(text: string): End {
  const [inode = '', head = '', end = ''] = text.split(':');
  return { inode, head, end };
}
