/** Loads the product without one of its rules. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Edit } from './mutant.ts';
import { type MutantName, mutants } from './mutants.ts';

const root = new URL('../../', import.meta.url);

/**
 * From here on this process loads the product without the rule.
 * @throws {Error} when the rule's text is not where it was: then the edit has to follow it
 */
export function removeRule(name: MutantName): void {
  const byUrl = Map.groupBy(mutants[name].edits, (edit) => new URL(edit.file, root).href);
  // Now rather than when the file is loaded, so that a stale edit is an error and not a rule that stayed in.
  for (const [url, edits] of byUrl) apply(readFileSync(fileURLToPath(url), 'utf8'), edits);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const edits = byUrl.get(url);
      if (edits === undefined) return loaded;
      return { ...loaded, source: apply(readFileSync(fileURLToPath(url), 'utf8'), edits) };
    },
  });
}

function apply(source: string, edits: readonly Edit[]): string {
  let text = source;
  for (const { file, find, replace } of edits) {
    const words = find.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const pattern = new RegExp(words.join('\\s*'), 'g');
    const count = [...text.matchAll(pattern)].length;
    if (count !== 1)
      throw new Error(`${file} has "${find}" ${count} times: let the edit follow the code it removes`);
    text = text.replace(pattern, () => replace);
  }
  return text;
}
