/**
 * A pattern of a job's spec for names of checkpoints: `{step}` stands for digits, `*` for anything but `/`, all else for
 * itself. Matched by hand and not as a regular expression: a few `*` in one of those take for ever on a long name.
 */

/** @returns null: more digits than a number holds exactly */
export function stepFrom(digits: string): number | null {
  const step = Number(digits);
  return Number.isSafeInteger(step) ? step : null;
}

export interface NamePattern {
  readonly text: string;
  /** Per part between `/`: what it is made of. */
  readonly parts: readonly (readonly PatternToken[])[];
}

type PatternToken = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'any' | 'step' };

const lengthMax = 256;
const partsMax = 4;

/** @returns null: empty, absolute, leading upwards, deeper than 4 parts, or with two `{step}` */
export function compilePattern(text: string): NamePattern | null {
  const parts = text.split('/');
  const isUsable =
    text.length <= lengthMax &&
    parts.length <= partsMax &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..') &&
    text.split('{step}').length <= 2;
  return isUsable ? { text, parts: parts.map(tokensOf) } : null;
}

/** Levels of directories below the root in which checkpoints lie. @param pattern null: the usual names */
export function levelsOf(pattern: NamePattern | null): number {
  return pattern === null ? 1 : pattern.parts.length - 1;
}

function tokensOf(part: string): readonly PatternToken[] {
  return part
    .split(/(\{step\}|\*+)/)
    .filter((piece) => piece !== '')
    .map((piece) => {
      if (piece === '{step}') return { kind: 'step' };
      return piece.startsWith('*') ? { kind: 'any' } : { kind: 'text', text: piece };
    });
}

/** @returns null: it does not match; `step` is null where the pattern has none */
export function matchPattern(pattern: NamePattern, path: string): { readonly step: number | null } | null {
  const parts = path.split('/');
  if (parts.length !== pattern.parts.length) return null;
  let step: number | null = null;
  for (const [index, tokens] of pattern.parts.entries()) {
    const matched = matchPart(tokens, parts[index] ?? '');
    if (matched === null) return null;
    step = matched.digits === null ? step : stepFrom(matched.digits);
  }
  return { step };
}

/** Every pair of a token and a place in the name is tried at most once. */
function matchPart(tokens: readonly PatternToken[], name: string): { readonly digits: string | null } | null {
  const failed = new Set<number>();
  const from = (index: number, at: number): { readonly digits: string | null } | null => {
    const token = tokens[index];
    if (token === undefined) return at === name.length ? { digits: null } : null;
    const key = index * (name.length + 1) + at;
    if (failed.has(key)) return null;
    const matched = fromToken(token, index, at);
    if (matched === null) failed.add(key);
    return matched;
  };
  const fromToken = (token: PatternToken, index: number, at: number) => {
    if (token.kind === 'text')
      return name.startsWith(token.text, at) ? from(index + 1, at + token.text.length) : null;
    if (token.kind === 'any') return from(index + 1, at) ?? (at < name.length ? from(index, at + 1) : null);
    const digits = /^\d+/.exec(name.slice(at))?.[0] ?? '';
    for (let length = digits.length; length > 0; length -= 1) {
      const rest = from(index + 1, at + length);
      if (rest !== null) return { digits: digits.slice(0, length) };
    }
    return null;
  };
  return from(0, 0);
}
