/**
 * Runs seeds: `node test/sim/run.ts --seeds 20000 --from 1`. Replays one with its whole story: `--seed N --trace`.
 */
import { parseArgs } from 'node:util';
import { simulate } from './scenario.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
  },
});
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
let failed = 0;
const startMs = performance.now();
let steps = 0, sim=0;
for (let seed = first; seed < first + count; seed += 1) {
  const outcome = await simulate(seed, values.trace ? (line) => process.stdout.write(`${line}\n`) : null);
  steps += outcome.steps; sim+=outcome.simulatedMs;
  if (outcome.violations.length > 0) {
    failed += 1;
    process.stdout.write(`seed ${seed}: ${outcome.violations.map((v) => `${v.guarantee}: ${v.what}`).slice(0, 3).join('\n   ')}\n`);
  }
}
const tookMs = performance.now() - startMs;
process.stdout.write(`${count} seeds, ${failed} failed, ${(tookMs / count).toFixed(1)} ms, ${(steps / count).toFixed(0)} steps, ${(sim/count/1000).toFixed(0)} s each\n`);
