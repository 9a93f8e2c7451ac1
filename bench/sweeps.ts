/**
 * What a sweep costs beside its trials: trials of a second each on one node, against an array of the same jobs in the same run, from the
 * call to the end of the last one. Trials are as many at a time as there are GPUs, as are the jobs of the array.
 *
 *     node bench/sweeps.ts [trials] [GPUs]
 */
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { report, reportMachine, rounded, startCluster } from './support.ts';

const trials = Number(process.argv[2] ?? 1_000);
const gpus = Number(process.argv[3] ?? 8);
const name = 'one-second';
const activeStates = ['queued', 'starting', 'running', 'stopping'] as const;
const resources = { gpus: 1 };
/** As one argument, so that the array runs the very same text. */
const program = (loss: string) => `echo "iter 1: loss ${loss}, time 440.71ms, mfu 48.31%"; exec sleep 1`;

reportMachine();
const cluster = await startCluster(1, gpus);
const { api } = cluster;

async function timed(figure: string, work: () => Promise<void>): Promise<number> {
  const load = rounded(loadavg()[0] ?? 0);
  const startedMs = performance.now();
  await work();
  const seconds = rounded((performance.now() - startedMs) / 1_000);
  report(figure, { seconds, load });
  return seconds;
}

async function array(): Promise<void> {
  const specJson = JSON.stringify({ name, command: program('0.5'), resources });
  const { arrayId } = await api.submit({ specJson, requestId: 'array', arraySize: trials });
  if (arrayId === null) throw new Error('the coordinator took no array');
  for (;;) {
    const { jobs, notStored } = await api.listJobs({ arrayId, states: activeStates, limit: 1 });
    if (jobs.length === 0 && notStored === 0) return;
    await delay(200);
  }
}

async function sweep(): Promise<void> {
  const spec = {
    name,
    trials,
    objective: { metric: 'train_loss' },
    parameters: { loss: { type: 'float', min: 0, max: 1 } },
    job: { name, command: program('{loss}'), resources },
  };
  const { id } = await api.createSweep({ specJson: JSON.stringify(spec), requestId: 'sweep' });
  for (;;) {
    const { state, complete } = await api.getSweep(id);
    if (state === 'done' && complete === trials) return;
    if (state !== 'running') throw new Error(`the sweep is ${state} with ${complete} complete trials`);
    await delay(200);
  }
}

try {
  const floor = await timed(`array of ${trials} jobs of 1 s on ${gpus} GPUs`, array);
  const whole = await timed(`sweep of ${trials} trials of 1 s on ${gpus} GPUs`, sweep);
  report('overhead', { percent: rounded((whole / floor - 1) * 100), target: 'percent < 20' });
} finally {
  await cluster.stop();
}
