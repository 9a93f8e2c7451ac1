/**
 * Runs the simulation outside of the tests:
 *
 *   node test/sim/run.ts --seeds 20000 --from 1     many seeds; prints the failing ones
 *   node test/sim/run.ts --seed 4711 --trace        one seed with its whole story
 *   node test/sim/run.ts --without fencing-token    until the check of a removed rule fails
 *   node test/sim/run.ts --help                     the rules that can be removed, and the guarantees that are checked
 */
import { parseArgs } from 'node:util';
import { guarantees, type Violation } from './checks/verdict.ts';
import type { Mutant } from './mutant.ts';
import { isMutantName, mutants } from './mutants.ts';
import { removeRule } from './removeRule.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    without: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);
if (values.help) {
  print('usage: node test/sim/run.ts [--from SEED] [--seeds COUNT]');
  print('       node test/sim/run.ts --seed SEED [--trace]');
  print('       node test/sim/run.ts --without RULE [--seeds COUNT]');
  print('\nRules that can be removed:');
  for (const [name, { rule }] of Object.entries(mutants)) print(`  ${name}: ${rule}`);
  print('\nGuarantees that are checked (those with a number: docs/guarantees.md):');
  for (const [name, statement] of Object.entries(guarantees)) print(`  ${name}: ${statement}`);
  process.exit();
}

const firstSeed = wholeNumber(values.seed ?? values.from);
const seedCount = values.seed === undefined ? wholeNumber(values.seeds) : 1;
const mutant = withoutRule(values.without);
const awaited = mutant?.breaks;
// Only now: what is loaded from here on is the product without the rule.
const { simulate } = await import('./scenario.ts');

const startMs = performance.now();
let failed = 0;
let ran = 0;
for (let seed = firstSeed; seed < firstSeed + seedCount; seed += 1) {
  ran += 1;
  const endWhenFound = (violation: Violation) => {
    if (awaited?.includes(violation.guarantee) !== true) return;
    // What was awaited is there: the rest of the run would tell nothing more.
    failed += 1;
    printViolation(seed, violation);
    end();
  };
  const trace = values.trace ? print : null;
  const { violations, digest } = await simulate(seed, trace, endWhenFound, mutant?.circumstances);
  if (violations.length > 0) {
    failed += 1;
    // What else a missing rule breaks is not what is awaited.
    if (awaited !== undefined) continue;
    for (const violation of violations.slice(0, 3)) printViolation(seed, violation);
    print(`  replay: node test/sim/run.ts --seed ${seed} --trace`);
  } else if (values.seed !== undefined) {
    print(`seed ${seed}: no violation, digest ${digest}`);
  }
}
end();

function printViolation(seed: number, { guarantee, what, atMs }: Violation): void {
  print(`seed ${seed}, at ${(atMs / 1000).toFixed(3)} s: ${guarantee}: ${what}`);
}

function end(): never {
  const seconds = (performance.now() - startMs) / 1000;
  print(`${ran} seeds in ${seconds.toFixed(1)} s, ${failed} with violations`);
  process.exit(failed > 0 ? 1 : 0);
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`"${text}" is not a whole number`);
  return Number(text);
}

/** @returns null when every rule is in */
function withoutRule(name: string | undefined): Mutant | null {
  if (name === undefined) return null;
  if (!isMutantName(name)) {
    throw new Error(`no rule is named ${name}; there are: ${Object.keys(mutants).join(', ')}`);
  }
  removeRule(name);
  return mutants[name];
}
