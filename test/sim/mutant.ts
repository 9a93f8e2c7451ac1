/** What a removed rule is made of. */
import type { Guarantee } from './checks/verdict.ts';

/** An exported function of the product that is called instead of the one of that name. */
export interface Replacement {
  /** Relative to the repository. */
  readonly file: string;
  /** Of the function. It is the name of the rule in the product. */
  readonly name: string;
  /** @returns the function to call. @param original the product's */
  readonly make: (original: never) => unknown;
}

/** A change of the text of a file as it is loaded, for rules that no function of the product names yet. */
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
  readonly replacements?: readonly Replacement[];
  readonly edits?: readonly Edit[];
}

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

/**
 * Replaces functions of one module: `replacing<typeof module>(file)('isGood', (isGood) => …)`. The module's type is imported
 * and the module is not: what is imported before the rule is removed keeps it.
 */
export function replacing<Module>(file: string) {
  return <Name extends keyof Module & string>(
    name: Name,
    make: (original: Module[Name]) => Module[Name],
  ): Replacement => ({ file, name, make });
}
