/** Loads the product without one of its rules. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Mutant, Replacement } from './mutant.ts';
import { type MutantName, mutants } from './mutants.ts';

const root = new URL('../../', import.meta.url);
const urlOf = ({ file }: Replacement) => new URL(file, root).href;

/** Where a loaded module finds the replacements of its functions. */
const replacementsKey = 'musterSimulationReplacements';

/**
 * From here on this process loads the product without the rule.
 * @throws {Error} when a function or a class has another name
 */
export function removeRule(name: MutantName): void {
  const { replacements }: Mutant = mutants[name];
  const byFile = Map.groupBy(replacements, urlOf);
  const withoutRule = (url: string, own: readonly Replacement[]) =>
    own.reduce(replaced, readFileSync(fileURLToPath(url), 'utf8'));
  const byName = Object.fromEntries(replacements.map((each) => [keyOf(each), each.make]));
  Object.assign(globalThis, { [replacementsKey]: byName });
  // Now rather than when the file is loaded, so that a stale name is an error and not a rule that stayed in.
  for (const [url, own] of byFile) withoutRule(url, own);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const own = byFile.get(url);
      return own === undefined ? loaded : { ...loaded, source: withoutRule(url, own) };
    },
  });
}

function keyOf({ file, name }: Replacement): string {
  return `${file} ${name}`;
}

/** A function gets another name, and its own goes to one that calls the replacement, inside and outside of the module. */
function replaced(source: string, replacement: Replacement): string {
  const { file, name } = replacement;
  const [owner, method] = name.split('.');
  const make = `globalThis[${JSON.stringify(replacementsKey)}][${JSON.stringify(keyOf(replacement))}]`;
  if (method !== undefined) {
    const declaration = new RegExp(`^export class ${owner}[ <]`, 'm');
    if (!declaration.test(source)) throw new Error(stale(file, 'class', owner));
    return `${source}
${owner}.prototype.${method} = ${make}(${owner}.prototype.${method});
`;
  }
  const declaration = new RegExp(`^export (?:async )?function\\*? ${name}(?=[(<])`, 'm');
  if (!declaration.test(source)) throw new Error(stale(file, 'function', name));
  const original = `${name}OfProduct`;
  return `${source.replace(declaration, (found) => found.replace('export ', '').replace(name, original))}
export function ${name}(...args) {
  return ${make}(${original})(...args);
}
`;
}

function stale(file: string, kind: 'class' | 'function', name: string | undefined): string {
  return `${file} exports no ${kind} ${name}: let the mutant follow the rule's new name`;
}
