/** Version of every Muster program of this tree; the packages are released together. */
export const musterVersion = '0.1.0';

/** Metadata of a call in which a client names its version; clients of other makers leave it out. */
export const versionKey = 'muster-version';

/**
 * Whether two programs are too far apart to work together: at most one minor version of the same major version may lie between them.
 * @returns which of them is the older one; null: they work together, or one of them names no version
 */
export function tooOld(one: string, other: string): 'one' | 'other' | null {
  const [first, second] = [minorOf(one), minorOf(other)];
  if (first === null || second === null) return null;
  const isNear = first.major === second.major && Math.abs(first.minor - second.minor) <= 1;
  if (isNear) return null;
  return first.major < second.major || (first.major === second.major && first.minor < second.minor)
    ? 'one'
    : 'other';
}

/**
 * What a coordinator answers a client or an agent that is too far from its own version.
 * @param who as in `this client`
 * @param ours version of the coordinator
 * @returns null: they work together
 */
export function skewRefusal(who: string, theirs: string, ours: string): string | null {
  const older = tooOld(theirs, ours);
  if (older === null) return null;
  const remedy = older === 'one' ? `upgrade ${who}` : 'upgrade the coordinator';
  return `${who} has version ${theirs}, and this coordinator ${ours}; they may differ by one minor version: ${remedy}`;
}

function minorOf(version: string): { readonly major: number; readonly minor: number } | null {
  const [, major, minor] = /^(\d{1,6})\.(\d{1,6})\.\d{1,6}(?:[-+].*)?$/.exec(version) ?? [];
  return major === undefined || minor === undefined ? null : { major: Number(major), minor: Number(minor) };
}
