/** Phases with what the program prints and what evaluations find out, by programs that end at once. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
let httpUrl: string;
beforeAll(async () => {
  cluster = await startCluster({ coordinatorFlags: ['--http', '127.0.0.1:0'] });
  const connection = readFileSync(join(cluster.dataDir, 'connection.json'), 'utf8');
  httpUrl = `http://${(JSON.parse(connection) as { http: string }).http}`;
});

test('targets in tokens: progress follows the output, and is shown wherever phases are', async () => {
  const gate = join(cluster.workDir, 'gate');
  const id = await cluster.submit({
    name: 'tokens',
    command: [
      'sh',
      '-c',
      `echo '{"step": 5, "loss": 3.5, "tokens_seen": {seen}}'; until [ -e ${gate} ]; do sleep 0.05; done; ` +
        `echo '{"step": 10, "loss": 3, "tokens_seen": {phase_end}}'`,
    ],
    phases: [
      { name: 'broad', tokens: 4_000, params: { seen: 1_000 } },
      { name: 'domain', tokens: 1_000, params: { seen: 4_500 }, success: 'tokens >= 5000.0' },
    ],
  });
  await waitFor('the output shows tokens', async () => (await cluster.api.getJob(id)).phases?.percent === 20);
  const lines = [
    'phase broad (1 of 2), 20 % of all phases',
    '1. broad: current, step 5, 1000 tokens, tokens 0-4000',
  ];
  for (const command of ['job', 'explain']) {
    const { stdout } = await cluster.muster([command, id]);
    for (const line of lines) expect(stdout).toContain(line);
  }
  const page = await (await fetch(`${httpUrl}/metrics`)).text();
  expect(page).toContain(`muster_job_phase_done_ratio{muster_job="${id}",phase="broad",unit="tokens"} 0.25`);
  writeFileSync(gate, '');
  await waitFor('it has succeeded', async () => (await cluster.api.getJob(id)).state === 'succeeded');
  expect((await cluster.api.getJob(id)).phases?.phases).toMatchObject([
    { tokens: 4_000, verdict: null },
    { tokens: 5_000, verdict: 'met', values: { tokens: 5_000 } },
  ]);
});

test('a criterion on what evaluations measure waits for the evaluation of the last checkpoint, over a kill of the coordinator', async () => {
  const gate = join(cluster.workDir, 'measured');
  const id = await cluster.submit({
    name: 'measured',
    // A loss that the program measures itself, and that would meet the criterion.
    command: [
      'sh',
      '-c',
      `echo '{"step": {phase_end}, "loss": 1, "eval_loss": 0.1}'; ` +
        `echo '{"step": {phase_end}}' > "$MUSTER_CHECKPOINT_DIR/step_{phase_end}.json"`,
    ],
    phases: [
      { name: 'broad', steps: 10, success: 'eval_loss < 3.0', extend: { steps: 5 } },
      { name: 'domain', steps: 5 },
    ],
    evaluate: {
      command: [
        'sh',
        '-c',
        `until [ -e ${gate} ]; do sleep 0.05; done; echo "{\\"step\\": 1, \\"eval_loss\\": $([ $MUSTER_CHECKPOINT_STEP -gt 10 ] && echo 2 || echo 4)}"`,
      ],
      on: 'final',
      metric: { name: 'eval_loss' },
    },
  });
  const now = () => cluster.api.getJob(id);
  const evaluations = async () => (await cluster.api.listJobs({ label: `muster.evaluates=${id}` })).jobs;
  await waitFor('its checkpoint is evaluated', async () => (await evaluations())[0]?.state === 'running');
  expect(await now()).toMatchObject({
    state: 'queued',
    phases: { index: 0, phases: [{ state: 'judged' }, {}] },
  });
  const [first] = await evaluations();
  expect((await cluster.muster(['explain', id])).stdout).toContain(`step_10.json: ${first?.id}`);
  await cluster.coordinator.kill();
  writeFileSync(gate, '');
  await cluster.coordinator.start();
  await waitFor('it has succeeded', async () => (await now().catch(() => null))?.state === 'succeeded');
  // 4 after ten steps, so that the phase was extended; 2 after five more.
  const { phases, checkpoints } = await now();
  expect(phases?.phases).toMatchObject([
    { extensions: 1, verdict: 'met', values: { eval_loss: 2 }, checkpoint: { step: 15 } },
    { verdict: null },
  ]);
  const rows = checkpoints.map(({ step, evaluation }) => [step, evaluation?.metrics['eval_loss']]);
  expect(rows.slice(0, 2)).toEqual([
    [10, 4],
    [15, 2],
  ]);
  expect((await cluster.muster(['job', id])).stdout).toMatch(
    /1\. broad: ended.*extended once, met \(eval_loss 2\)/,
  );
});
