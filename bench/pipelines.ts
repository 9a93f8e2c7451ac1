/**
 * How long a run of a pipeline takes whose steps are all cached: 20 chains of 10 steps, each with an input and an output. The first run
 * makes the outputs with real jobs; the rounds after it take them.
 *
 *     node bench/pipelines.ts [rounds]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { report, reportMachine, startCluster, summary } from './support.ts';

const rounds = Number(process.argv[2] ?? 5);
const chains = 20;
const chainLength = 10;
const scratch = mkdtempSync(join(tmpdir(), 'muster-bench-pipelines-'));

const steps = Object.fromEntries(
  Array.from({ length: chains * chainLength }, (_, number) => {
    const chain = number % chains;
    const place = Math.floor(number / chains);
    return [
      `s${chain}-${place}`,
      {
        run: ['sh', '-c', `echo ${number} > "$MUSTER_OUTPUT_out"`],
        outputs: { out: { type: 'file' } },
        cache: true,
        ...(place === 0 ? {} : { inputs: { before: `s${chain}-${place - 1}.out` } }),
      },
    ];
  }),
);
const specJson = JSON.stringify({
  name: 'bench',
  artifacts: join(scratch, 'artifacts'),
  workdir: scratch,
  steps,
});

reportMachine();
const cluster = await startCluster(1, 0);
try {
  const { api } = cluster;
  const run = async (requestId: string) => {
    const startedAt = performance.now();
    let { id, state, reason } = await api.runPipeline({ specJson, requestId });
    while (state === 'running') {
      await delay(20);
      ({ id, state, reason } = await api.getPipeline(id));
    }
    if (state !== 'succeeded') throw new Error(`${id} is ${state}: ${reason}`);
    return performance.now() - startedAt;
  };
  report('200 steps that run', { unit: 'ms', ...summary([await run('first')]) });
  const samples: number[] = [];
  for (let round = 0; round < rounds; round += 1) samples.push(await run(`cached-${round}`));
  report('200 steps, all cached', { unit: 'ms', ...summary(samples), target: 'max < 3000' });
} finally {
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
}
