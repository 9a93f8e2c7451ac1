/** The example of a curriculum with real training: phases over kills of the coordinator and a preemption. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PhasesView } from '@muster/common/phases';
import { parseJobSpec } from '@muster/common/spec/parse';
import { jobSpecToFile } from '@muster/common/spec/serialize';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { repositoryDir } from '../support/command.ts';
import { pythonWithTorch, waitFor } from '../support/services.ts';

let cluster: Cluster;
let python = '';
beforeAll(async () => {
  python = await pythonWithTorch();
  cluster = await startCluster({ gpus: 1 });
});

/** The job of the example, shorter, and with criteria that any model meets that learns. */
function exampleJob(dir: string) {
  const parsed = parseJobSpec(
    readFileSync(join(repositoryDir, 'examples/curriculum/curriculum.yaml'), 'utf8'),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const file = jobSpecToFile(parsed.spec);
  const steps = [40, 20, 20, 10];
  return {
    ...file,
    command: [python, ...parsed.spec.command.slice(1), '--step-ms={pace}'],
    params: { ...file.params, pace: 0 },
    workdir: repositoryDir,
    resources: { gpus: 1 },
    checkpoint: { dir },
    // The coordinator is away for as long as a phase takes.
    lease: '10m',
    phases: (file.phases ?? []).map((phase, index) => ({
      ...phase,
      steps: steps[index],
      params: { ...phase.params, ...(phase.name === 'curated' && { pace: 250 }) },
      ...(phase.success !== undefined && { success: 'eval_loss < 3.18 && step >= 1.0' }),
    })),
  };
}

test('four phases in one job, with kills of the coordinator at the ends of two, and a preemption within one', async () => {
  const dir = join(cluster.workDir, 'curriculum');
  const id = await cluster.submit(exampleJob(dir));
  const now = () => cluster.api.getJob(id);
  const isIn = async (index: number, state: string) => {
    const job = await now().catch(() => null);
    return job?.phases?.index === index && job.state === state;
  };

  await waitFor('the broad phase runs', () => isIn(0, 'running'));
  await cluster.coordinator.kill();
  await waitFor('it has reached its target', async () => existsSync(join(dir, 'step-000040.pt')));
  await cluster.coordinator.start();

  await waitFor('the curated phase runs', () => isIn(1, 'running'));
  await cluster.submit({ name: 'urgent', command: ['true'], priority: 100, resources: { gpus: 1 } });
  await waitFor('it was preempted', async () => (await now()).preemptions === 1);

  await waitFor('the domain phase has begun', () => isIn(2, 'running'));
  await waitFor('its target is reached', async () => existsSync(join(dir, 'step-000080.pt')));
  await cluster.coordinator.kill();
  await cluster.coordinator.start();
  await waitFor('it has succeeded', async () => (await now().catch(() => null))?.state === 'succeeded');

  const job = await now();
  const phases = job.phases as PhasesView;
  expect(phases).toMatchObject({ unit: 'steps', index: 3, done: 90, total: 90, percent: 100 });
  expect(
    phases.phases.map(({ name, verdict, step, checkpoint }) => [name, verdict, step, checkpoint?.step]),
  ).toEqual([
    ['broad', null, 40, 40],
    ['curated', 'met', 60, 60],
    ['domain', 'met', 80, 80],
    ['cooldown', 'met', 90, 90],
  ]);
  // Each attempt resumes where the one before has saved; that of the preempted phase within it.
  const [broad, curated, ...others] = job.attempts.toSorted((a, b) => a.number - b.number);
  expect(broad?.resume).toBeNull();
  expect(curated).toMatchObject({ resume: { step: 40 }, cause: { kind: 'preempted' } });
  const [again = 0, ...ends] = others.map(({ resume }) => resume?.step ?? 0);
  expect(again).toBeGreaterThan(40);
  expect(again).toBeLessThan(60);
  expect(ends).toEqual([60, 80]);
  const kinds = (await cluster.events(id))
    .map(({ kind }) => kind)
    .filter((kind) => kind.startsWith('phase.'));
  expect(kinds).toEqual([
    'phase.started',
    'phase.ended',
    'phase.started',
    'phase.ended',
    'phase.started',
    'phase.ended',
    'phase.started',
    'phase.ended',
  ]);

  const shown = (await cluster.muster(['job', id])).stdout;
  expect(shown).toContain('phase cooldown (4 of 4), 100 % of all phases');
  expect(shown).toMatch(/2\. curated: ended, step 60, steps 40-60, met \(eval_loss \d\.\d+, step 60\)/);
});
