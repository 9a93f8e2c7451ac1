/** What a removed rule is made of. */
import type { Guarantee } from './checks/verdict.ts';

/** Made to the text of a file as it is loaded, so that all else is the very code that ships. */
export interface Edit {
  /** Relative to the repository. */
  readonly file: string;
  /** Occurs exactly once; white space does not count. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly rule: string;
  /** Guarantees (docs/guarantees.md) and other checks that see it; any one of them will do. */
  readonly breaks: readonly Guarantee[];
  /** The first seed that shows it, when it was looked for last. Another is searched for where that has moved. */
  readonly seed: number;
  readonly edits: readonly Edit[];
}

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}
