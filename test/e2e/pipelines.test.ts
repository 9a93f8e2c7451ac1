/** A pipeline with real processes, over kills of the coordinator. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PipelineRunView } from '@muster/common/pipelines';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ gpus: 1 });
});

async function stateOf(id: string): Promise<string> {
  return (await cluster.api.getPipeline(id)).state;
}

async function shown(id: string): Promise<PipelineRunView> {
  return JSON.parse((await cluster.muster(['pipeline', 'show', id, '-o', 'json'])).stdout) as PipelineRunView;
}

test('each step runs once over kills of the coordinator, and hands on what it has made', async () => {
  const { workDir } = cluster;
  const started = join(workDir, 'started');
  const noted = (name: string) => `echo ${name} >> ${started}`;
  const copied = `cat \${inputs.data}/letters > \${outputs.model}`;
  const appended = 'printf $MUSTER_ITEM$MUSTER_PARAM_suffix >> $MUSTER_OUTPUT_model';
  const pipeline = {
    name: 'letters',
    artifacts: join(workDir, 'artifacts'),
    params: { suffix: 'x' },
    steps: {
      prepare: {
        run: `${noted('prepare')}; printf ab > $MUSTER_OUTPUT_data/letters`,
        outputs: { data: { type: 'directory' } },
        cache: true,
      },
      train: {
        for_each: ['one', 'two'],
        job: {
          command: `${noted('train-$MUSTER_ITEM')}; ${copied}; ${appended}`,
        },
        inputs: { data: 'prepare.data' },
        outputs: { model: { type: 'file' } },
        cache: true,
      },
      join: { run: `${noted('join')}; cat \${inputs.models}`, inputs: { models: 'train.model' } },
    },
    finally: { tidy: { run: noted('tidy') } },
  };
  const file = join(workDir, 'pipeline.json');
  writeFileSync(file, JSON.stringify(pipeline));
  appendFileSync(started, '');
  const id = (await cluster.muster(['pipeline', 'run', '-f', file, '--param', 'suffix=y'])).stdout.trim();
  const startedCount = () => readFileSync(started, 'utf8').trim().split('\n').filter(Boolean).length;
  for (const count of [1, 3]) {
    await waitFor(`${count} steps have started`, () => startedCount() >= count);
    await cluster.coordinator.kill();
    await cluster.coordinator.start();
  }
  await waitFor('the run has ended', async () => (await stateOf(id).catch(() => '')) === 'succeeded');

  expect(readFileSync(started, 'utf8').trim().split('\n').sort()).toEqual([
    'join',
    'prepare',
    'tidy',
    'train-one',
    'train-two',
  ]);
  const { steps } = await shown(id);
  expect(steps.map(({ step, item, state, tries }) => [step, item, state, tries])).toEqual([
    ['prepare', null, 'succeeded', 1],
    ['train', '"one"', 'succeeded', 1],
    ['train', '"two"', 'succeeded', 1],
    ['join', null, 'succeeded', 1],
    ['tidy', null, 'succeeded', 1],
  ]);
  const joined = await cluster.muster(['logs', steps[3]?.jobId ?? '']);
  expect(joined.stdout).toContain('aboneyabtwoy');
  const graph = await cluster.muster(['lineage', steps[3]?.jobId ?? '', '--graph', 'dot']);
  expect(graph.stdout.match(/->/g)).toHaveLength(4);
  expect(graph.stdout).toMatch(/label="join.* color=/);
  const { jobs } = await cluster.api.listJobs({ label: `muster.pipeline=${id}` });
  expect(jobs).toHaveLength(5);

  // What another run would do again is taken from this one; a changed artifact is found by the step that reads it.
  const model = steps[1]?.outputs[0]?.path ?? '';
  expect(existsSync(model)).toBe(true);
  writeFileSync(model, 'changed');
  const second = (await cluster.muster(['pipeline', 'run', '-f', file, '--param', 'suffix=y'])).stdout.trim();
  await waitFor('the second run has ended', async () => (await stateOf(second)) === 'failed');
  const again = await shown(second);
  expect(again.steps.map(({ state, cachedFrom }) => [state, cachedFrom])).toEqual([
    ['cached', id],
    ['cached', id],
    ['cached', id],
    ['failed', null],
    ['succeeded', null],
  ]);
  expect(again.reason).toContain(`${model} has changed since its step has made it`);
});
