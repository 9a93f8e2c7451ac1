/** Runs exported files with Python, with stand-ins for the modules of Airflow, and real commands. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPipeline } from '../file/pipelineFile.ts';
import { airflowDag } from './airflow.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-airflow-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Run {
  readonly states: Readonly<Record<string, string>>;
  readonly dag: string;
  readonly pods: readonly unknown[];
}

let files = 0;
function runIn(pipeline: object, params: object): Run {
  const read = readPipeline({ name: 'vision', artifacts: join(folder, 'a'), ...pipeline });
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  files += 1;
  const file = join(folder, `dag${files}.py`);
  writeFileSync(file, airflowDag(read.pipeline).text);
  const standIn = join(import.meta.dirname, 'testing', 'airflow_stand_in.py');
  const input = JSON.stringify({ file, params, run_id: `run${files}` });
  const { status, stdout, stderr } = spawnSync('python3', [standIn], {
    input,
    encoding: 'utf8',
    cwd: folder,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Run;
}

const hostile = `a'b "c" $(touch pwned) {{ params }} \`touch pwned\``;
const steps = {
  prepare: {
    run: ['sh', '-c', 'printf %s "$1" > "$2/text"', 'x', `\${params.data}`, `\${outputs.out}`],
    outputs: { out: { type: 'directory' } },
  },
  'train-a': {
    for_each: `\${params.seeds}`,
    run: `cat "\${inputs.data}/text" > "$MUSTER_OUTPUT_model"; printf %s "-\${item}" >> "\${outputs.model}"`,
    inputs: { data: 'prepare.out' },
    outputs: { model: { type: 'file', path: 'deep/model.pt' } },
  },
  gather: {
    run: ['sh', '-c', 'test $# = 3 && cat "$@" > all', 'x', `\${inputs.models}`],
    inputs: { models: 'train-a.model' },
  },
};

test('what steps make is found by others, for each item, whatever is in the values', () => {
  const params = { data: hostile, seeds: [1, 2] };
  const { states, dag } = runIn({ params, steps }, { seeds: ['x', 'y z', 3] });
  expect({ states, dag }).toEqual({
    states: {
      prepare: 'success',
      'train-a.items': 'success',
      'train-a': 'success',
      gather: 'success',
      'pipeline.result': 'success',
    },
    dag: 'success',
  });
  expect(readFileSync(join(folder, 'all'), 'utf8')).toBe(`${hostile}-x${hostile}-y z${hostile}-3`);
  expect(existsSync(join(folder, 'pwned'))).toBe(false);
});

test('conditions, failures and the end decide which steps run', () => {
  const pipeline = {
    params: { lr: 0.1, name: 'a"b', fast: false },
    steps: {
      small: { run: 'true', when: `lr < 0.05 || (name == 'x' && !fast)` },
      large: { run: 'exit 3', when: `lr >= 0.05 && name != 'x'`, after: 'small' },
      rest: { run: 'true', after: 'large' },
      sent: { run: 'true', after: 'large', when: `steps.large == 'succeeded' && !fast` },
      never: { run: 'exit 4', when: `steps.rest != 'failed'`, after: 'rest' },
    },
    on_failure: { alarm: { run: 'true' } },
    finally: { tidy: { run: 'true' } },
  };
  expect(runIn(pipeline, {})).toMatchObject({
    states: { small: 'skipped', large: 'failed', rest: 'upstream_failed', alarm: 'success', tidy: 'success' },
    dag: 'failed',
  });
  expect(runIn(pipeline, { lr: 0.01 })).toMatchObject({
    states: {
      small: 'success',
      large: 'skipped',
      rest: 'success',
      sent: 'skipped',
      never: 'skipped',
      alarm: 'skipped',
      tidy: 'success',
    },
    dag: 'success',
  });
});

test('a job with an image becomes a pod with its resources, and a sweep a task that fails', () => {
  const job = {
    image: 'train:1',
    command: ['train', '$HOME', '$(A)', '$$', 'x.yaml'],
    env: { A: '1' },
    resources: { gpus: 2, cpus: 1.5, memory_mb: 512 },
  };
  const tune = {
    sweep: {
      trials: 1,
      objective: { metric: 'eval_loss' },
      parameters: { x: [1] },
      job: { command: 'true' },
    },
  };
  const use = { run: 'true', inputs: { best: 'tune.best' } };
  const each = { for_each: ['a.yaml'], job: { image: 'x', command: [`\${item}`] } };
  const { states, pods } = runIn({ steps: { train: { job }, tune, use, each } }, {});
  expect(states).toMatchObject({ train: 'success', tune: 'failed', use: 'upstream_failed' });
  expect(pods).toEqual([
    {
      image: 'train:1',
      cmds: ['/bin/sh', '-c'],
      arguments: [expect.stringContaining(`A=1 train '$HOME' '$$(A)' '$$$$' x.yaml`)],
      limits: { 'nvidia.com/gpu': '2', cpu: '1.5', memory: '512Mi' },
    },
    { image: 'x', cmds: ['/bin/sh', '-c'], arguments: [expect.stringMatching(/ a\.yaml$/)], limits: {} },
  ]);
});
