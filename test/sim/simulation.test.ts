import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { capture } from '../../scripts/processes.mjs';
import { trialsOf } from '../support/trials.ts';
import { isMutantName, mutants } from './mutants.ts';
import { simulate } from './scenario.ts';

const seedCount = trialsOf(1_000, 24);
/** Only a hang takes this long, also for the last of those that wait for their turn, on a machine that is slow and busy. */
const timeout = 60 * 60_000;

/** In a process of its own: two at a time use both cores, and a rule can only be removed before anything is loaded. */
function run(...args: readonly string[]): Promise<{ code: number; output: string }> {
  return capture(process.execPath, [fileURLToPath(new URL('run.ts', import.meta.url)), ...args]);
}

test('no seed breaks a guarantee', { timeout }, async () => {
  const half = seedCount / 2;
  const runs = await Promise.all(
    [1, 1 + half].map((from) => run('--from', String(from), '--seeds', String(half))),
  );
  for (const { code, output } of runs) expect(code, output).toBe(0);
});

test.each([
  [6043, 'the coordinator is paused from the faults into the quiet phase'],
  [6150, 'the message that a checkpoint was written over gets lost'],
])('seed %i breaks no guarantee: %s', { timeout }, async (seed) => {
  const { code, output } = await run('--seed', String(seed));
  expect(code, output).toBe(0);
});

test('a run is a function of its seed, bit for bit', { timeout }, async () => {
  const digestOf = async (seed: number) => {
    const story: string[] = [];
    const { digest } = await simulate(seed, (line) => story.push(line));
    return { story, digest };
  };
  const digests = new Set<string>();
  for (const seed of [3, 42]) {
    const first = await digestOf(seed);
    const second = await digestOf(seed);
    expect(second.story).toEqual(first.story);
    expect(second.digest).toBe(first.digest);
    const { output } = await run('--seed', String(seed));
    expect(output).toContain(`seed ${seed}: no violation, digest ${first.digest}`);
    digests.add(first.digest);
  }
  expect(digests.size, 'runs of different seeds').toBe(2);
});

/** One for each core. */
const lanes: Promise<unknown>[] = [Promise.resolve(), Promise.resolve()];

/** Waits for its turn: more processes than cores would only wait for each other. */
function runInTurn(...args: readonly string[]): ReturnType<typeof run> {
  const turn = (lanes.shift() ?? Promise.resolve()).then(() => run(...args));
  lanes.push(turn.catch(() => {}));
  return turn;
}

test.concurrent.for(Object.keys(mutants).filter(isMutantName))(
  'without its rule, a check fails: %s',
  { timeout },
  async (name, { annotate }) => {
    const { breaks, seed } = mutants[name];
    const sees = new RegExp(`^seed \\d+, at .* s: (?:${breaks.join('|')}): `, 'm');
    const first = await runInTurn('--without', name, '--seed', String(seed));
    // Whatever changes in the product or in the draws moves it.
    const isFound = sees.test(first.output);
    const found = isFound ? first : await runInTurn('--without', name, '--seeds', '2000');
    expect(found.output).toMatch(sees);
    if (!isFound)
      await annotate(`note the seed of this line for ${name}: ${sees.exec(found.output)?.[0]}`, 'seed');
    expect(found.code).toBe(1);
  },
);
