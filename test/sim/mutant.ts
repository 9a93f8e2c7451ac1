/** What a removed rule is made of. */
import type { Guarantee } from './checks/verdict.ts';
import type { Circumstances } from './plan.ts';

/** A function that replaces one of the product, or of the simulated machines. */
export interface Replacement {
  /** Relative to the repository. */
  readonly file: string;
  /** Of an exported function, or `Class.method` of an exported class. It is the name of the rule. */
  readonly name: string;
  /** @returns the function to call. @param original that of the module */
  readonly make: (original: never) => unknown;
}

export interface Mutant {
  readonly rule: string;
  /** Guarantees (docs/guarantees.md) and other checks that see it; any one of them will do. */
  readonly breaks: readonly Guarantee[];
  /** The first seed that shows it, when it was looked for last. Another is searched for where that has moved. */
  readonly seed: number;
  /** Absent: as drawn. Given where it would take hundreds of seeds until what shows it is drawn. */
  readonly circumstances?: Circumstances;
  readonly replacements: readonly Replacement[];
}

type Method = (...args: never[]) => unknown;

type InstanceOf<Class> = Class extends { readonly prototype: infer Instance } ? Instance : never;

type MethodsOf<Instance> = {
  [Name in keyof Instance & string]: Instance[Name] extends Method ? Name : never;
}[keyof Instance & string];

/** The names of the rules of a module: `function`, or `Class.method`. */
type RuleOf<Module> = {
  [Name in keyof Module & string]: Module[Name] extends Method
    ? Name
    : `${Name}.${MethodsOf<InstanceOf<Module[Name]>>}`;
}[keyof Module & string];

type FunctionOf<Module, Name extends string> = Name extends keyof Module
  ? Module[Name]
  : Name extends `${infer Class extends keyof Module & string}.${infer Member}`
    ? Replaceable<InstanceOf<Module[Class]>, Member>
    : never;

/** A method as a function of its instance. */
type Replaceable<Instance, Name> = Name extends keyof Instance
  ? Instance[Name] extends (...args: infer Args) => infer Result
    ? (this: Instance, ...args: Args) => Result
    : never
  : never;

/**
 * Replaces functions of one module: `replacing<typeof module>(file)('isGood', (isGood) => …)`. The module's type is imported
 * and the module is not: what is imported before the rule is removed keeps it.
 */
export function replacing<Module>(file: string) {
  return <Name extends RuleOf<Module>>(
    name: Name,
    make: (original: FunctionOf<Module, Name>) => FunctionOf<Module, Name>,
  ): Replacement => ({ file, name, make });
}
