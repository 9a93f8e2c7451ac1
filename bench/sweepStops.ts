/**
 * How soon the GPU of a trial that is stopped early is of use to another one: from the save of its program after SIGTERM to the event that
 * ends the attempt, which frees the GPUs, and from there to the next attempt that is allocated.
 *
 *     node bench/sweepStops.ts [trials]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { quietMachine, report, reportMachine, startCluster, summary } from './support.ts';

const trials = Number(process.argv[2] ?? 40);
const workDir = mkdtempSync(join(tmpdir(), 'muster-bench-stops-'));
/** Its first trial is the best one and the others run until they are stopped, so that each is stopped at its first rung. */
const program = [
  `save() { echo '{"step": 3}' > "$MUSTER_CHECKPOINT_DIR/step-3.json"; date +%s%N > ${workDir}/$MUSTER_JOB_ID; exit 0; }`,
  'trap save TERM',
  'step=0',
  'until [ $step = 400 ]; do step=$((step + 1)); echo "iter $step: loss {loss}, time 440.71ms, mfu 48.31%"; sleep 0.1; done',
].join('\n');

reportMachine();
report('busy before', { percent: await quietMachine() });
const cluster = await startCluster(1, 2);
const { api } = cluster;
try {
  const spec = {
    name: 'stops',
    sampler: 'grid',
    parallel: 2,
    objective: { metric: 'train_loss' },
    early_stopping: { rule: 'asha', min_steps: 3, reduction: 2 },
    parameters: { loss: Array.from({ length: trials }, (_, trial) => 0.1 + trial / 100) },
    job: {
      command: program,
      resources: { gpus: 1 },
      checkpoint: { dir: join(workDir, 'checkpoints', '{trial}') },
    },
  };
  const { id } = await api.createSweep({ specJson: JSON.stringify(spec), requestId: 'stops' });
  for (;;) {
    const { state, pruned, paused } = await api.getSweep(id);
    if (state !== 'running' || pruned + paused >= trials - 2) break;
    await delay(500);
  }
  await api.stopSweep(id, 'measured');
  const active = ['queued', 'starting', 'running', 'stopping'] as const;
  while ((await api.listJobs({ states: active, limit: 1 })).jobs.length > 0) await delay(100);
  const savedMs = new Map(
    readdirSync(workDir, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => [name, Number(readFileSync(join(workDir, name), 'utf8')) / 1e6] as const),
  );
  const freed: number[] = [];
  const next: number[] = [];
  let freeSinceMs: number | null = null;
  for await (const { kind, subject, timeMs } of api.watchEvents({ sinceSeq: 0, follow: false })) {
    const saved = savedMs.get(subject);
    if (kind === 'attempt.ended' && saved !== undefined) {
      freed.push(timeMs - saved);
      freeSinceMs = timeMs;
    }
    if (kind === 'attempt.allocated' && freeSinceMs !== null) {
      next.push(timeMs - freeSinceMs);
      freeSinceMs = null;
    }
  }
  report('save of a trial that is stopped → its GPU is free', { ...summary(freed), target: 'max < 1000' });
  report('its GPU is free → another trial has it', summary(next));
} finally {
  await cluster.stop();
  rmSync(workDir, { recursive: true, force: true });
}
