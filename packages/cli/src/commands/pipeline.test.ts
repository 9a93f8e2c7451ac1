import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type {
  LineageStepView,
  LineageView,
  PipelineRunView,
  PipelineStepView,
} from '@muster/common/pipelines';
import { lineageToWire, pipelineToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { exitCodes } from '../exitCodes.ts';
import { aJob, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const id = 'pln_00000000000a';
const text = `name: vision
params:
  lr: {type: float}
  seeds: [1, 2]
  quick: false
steps:
  train:
    for_each: \${params.seeds}
    run: [train, "--lr=\${params.lr}", "--seed=\${item}"]
  report:
    run: report
    after: train
`;
const step: PipelineStepView = {
  step: 'train',
  group: 'steps',
  index: 1,
  item: '2',
  state: 'failed',
  tries: 2,
  jobId: 'job_00000000000b',
  sweepId: null,
  cachedFrom: null,
  reason: 'exit code 1',
  outputs: [{ name: 'model', type: 'file', path: '/m', bytes: 12, digest: `sha256:${'a'.repeat(64)}` }],
  startedAtMs: submittedAtMs,
  endedAtMs: submittedAtMs + 60_000,
};
const waiting: PipelineStepView = {
  ...step,
  step: 'tidy',
  group: 'finally',
  index: 0,
  item: null,
  state: 'waiting',
  tries: 0,
  jobId: null,
  reason: null,
  outputs: [],
  startedAtMs: null,
  endedAtMs: null,
};
const shown: PipelineRunView = {
  id,
  name: 'vision',
  user: 'ann',
  project: 'default',
  state: 'failed',
  reason: 'train has failed: exit code 1',
  spec: { name: 'vision' },
  params: { lr: 0.1, seeds: [1, 2] },
  trigger: null,
  rerunOf: 'pln_00000000000b',
  createdAtMs: submittedAtMs,
  endedAtMs: submittedAtMs + 90_000,
  steps: [step, waiting],
};
const answer = () => pipelineToWire(shown);

function pipelineFile(content: string): string {
  const path = join(temporaryDir(), 'pipeline.yaml');
  writeFileSync(path, content);
  return path;
}

test('a pipeline file is checked and sent as JSON, with its parameters and what jobs get of the shell', async () => {
  const args = ['pipeline', 'run', '-f', pipelineFile(text), '--param', 'lr=1e-3', '--param', 'seeds=a,b'];
  const { stdout, requests } = await run([...args, '--no-cache'], { RunPipeline: answer });
  expect(stdout).toBe(`${id}\n`);
  const [{ request } = { request: {} }] = requests;
  const { specJson, paramsJson, ...rest } = request as Record<string, string>;
  expect(JSON.parse(paramsJson ?? '')).toEqual({ lr: 0.001, seeds: ['a', 'b'] });
  expect(JSON.parse(specJson ?? '')).toMatchObject({
    name: 'vision',
    workdir: expect.stringMatching(/^\//),
    steps: { report: { run: 'report', after: 'train' } },
  });
  expect(rest).toMatchObject({ noCache: true, dryRun: false });
  const dry = await run([...args, '--dry-run'], { RunPipeline: answer });
  expect(dry.stdout).toBe('The pipeline is valid: 2 steps.\n');
  expect(dry.requests).toMatchObject([{ request: { dryRun: true, noCache: false } }]);
});

test('the digest of the code is that of its files', async () => {
  const code = join(temporaryDir(), 'src');
  mkdirSync(join(code, '__pycache__'), { recursive: true });
  writeFileSync(join(code, 'train.py'), 'print(1)');
  const sent = async () => {
    const args = ['pipeline', 'run', '-f', pipelineFile(`${text}code: ${code}\n`), '--param', 'lr=1'];
    const { requests } = await run(args, { RunPipeline: answer });
    const [{ request } = { request: {} }] = requests;
    return (JSON.parse((request as { specJson: string }).specJson) as { code: { digest: string } }).code
      .digest;
  };
  const before = await sent();
  expect(before).toMatch(/^sha256:[0-9a-f]{64}$/);
  writeFileSync(join(code, '__pycache__', 'train.pyc'), 'x');
  expect(await sent()).toBe(before);
  writeFileSync(join(code, 'train.py'), 'print(2)');
  expect(await sent()).not.toBe(before);
});

test('what is wrong is shown with its place, and nothing is sent', async () => {
  const wrong = pipelineFile(text.replace('after: train', 'after: trian'));
  const refused = await run(['pipeline', 'run', '-f', wrong, '--param', 'lr=1'], {});
  expect(refused.exitCode).toBe(exitCodes.usage);
  expect(refused.stderr).toContain(
    `${wrong}:12:12  steps.report.after: there is no step "trian"; did you mean "train"?`,
  );
  const missing = await run(['pipeline', 'run', '-f', pipelineFile(text), '--param', 'quick=yes'], {});
  expect(missing.stderr).toContain('param "lr": missing; give it with --param lr=VALUE');
  expect(missing.stderr).toContain('param "quick": got "yes"; expected true or false');
  const untyped = await run(['pipeline', 'run', '-f', pipelineFile(text), '--param', 'lr'], {});
  expect(untyped.stderr).toContain('--param: got "lr"; expected NAME=VALUE');
  expect([...refused.requests, ...missing.requests, ...untyped.requests]).toEqual([]);
  expect((await run(['pipeline', 'run'], {})).stderr).toContain('give the pipeline file with -f');
});

test('a condition that the coordinator refuses is shown with its place, and what is not of the file as it is', async () => {
  const file = pipelineFile(text.replace('after: train', 'after: train\n    when: lrr > 1'));
  const refusing = (path: string) => () => {
    const problem = { path, message: 'column 1: unknown name "lrr"', expected: null, suggestion: null };
    throw new MusterError('invalid', `${path}: refused`, { problems: [problem] });
  };
  const args = ['pipeline', 'run', '-f', file, '--param', 'lr=1'];
  const placed = await run(args, { RunPipeline: refusing('steps.report.when') });
  expect(placed.exitCode).toBe(exitCodes.usage);
  expect(placed.stderr).toMatch(/pipeline\.yaml:13:\d+ {2}steps\.report\.when: column 1: unknown name "lrr"/);
  const create = ['trigger', 'create', 'often', '-f', file, '--cron', 'x', '--param', 'lr=1'];
  const trigger = await run(create, { CreateTrigger: refusing('cron') });
  expect(trigger.stderr).toContain('muster: cron: refused');
});

test('a run is shown with its steps', async () => {
  const { stdout } = await run(['pipeline', 'show', 'vision'], { GetPipeline: answer });
  expect(stdout).toContain('State:    failed: train has failed: exit code 1\n');
  expect(stdout).toContain('Params:   lr=0.1 seeds=1,2\n');
  expect(stdout).toMatch(/train\[2\] +failed +2 +1 min +job_00000000000b +exit code 1/);
  expect(stdout).toMatch(/tidy \(finally\) +waiting +- +- +- +-/);
  expect(stdout).toContain(`Next: muster pipeline rerun ${id} `);
  const json = await run(['pipeline', 'show', id, '-o', 'json'], { GetPipeline: answer });
  expect(JSON.parse(json.stdout)).toEqual(shown);
  const list = await run(['pipeline', 'list'], {
    ListPipelines: () => ({ runs: [pipelineToWire({ ...shown, steps: [] })], more: true }),
  });
  expect(list.stdout).toMatch(/pln_00000000000a +vision +failed +ann/);
  expect(list.stderr).toBe('There are older runs, which are not shown.\n');
});

test('a step whose job waits in the queue shows why', async () => {
  const started: PipelineStepView = { ...step, state: 'running', reason: null, endedAtMs: null };
  const pending = {
    kind: 'never_fits',
    message: 'no node has 8 CPUs (largest has 2 CPUs)',
    remedy: null,
  } as const;
  const { stdout, requests } = await run(['pipeline', 'show', id], {
    GetPipeline: () => pipelineToWire({ ...shown, state: 'running', reason: null, steps: [started] }),
    ListJobs: () => ({ jobs: [wire.job(aJob({ id: started.jobId as JobId, state: 'queued', pending }))] }),
  });
  expect(stdout).toMatch(/train\[2\] +running .* in the queue: no node has 8 CPUs/);
  expect(requests.at(-1)).toMatchObject({
    request: { label: `muster.pipeline=${id}`, states: ['JOB_STATE_QUEUED'] },
  });
});

test('lineage is shown with the steps before and after', async () => {
  const { step: name, index, item, state, jobId, outputs } = step;
  const made: LineageStepView = {
    run: id,
    pipeline: 'vision',
    step: name,
    index,
    item,
    state,
    jobId,
    outputs,
    nodes: ['node-1'],
    params: { lr: 0.1 },
    code: 'git:1234',
    inputs: [],
    startedAtMs: submittedAtMs,
  };
  const lineage: LineageView = { subject: '/m', kind: 'artifact', madeBy: [made], usedBy: [] };
  const GetLineage = () => lineageToWire(lineage);
  const { stdout, requests } = await run(['lineage', '/m'], { GetLineage });
  expect(requests).toMatchObject([{ request: { subject: '/m' } }]);
  expect(stdout).toContain('Artifact: /m\nParams:   lr=0.1\nCode:     git:1234\n');
  expect(stdout).toMatch(
    /pln_00000000000a +train\[2\] +failed +job_00000000000b +node-1 +- +model@aaaaaaaaaaaa/,
  );
  expect(stdout).toContain('No step has used it.');
  const json = await run(['lineage', '/m', '-o', 'json'], { GetLineage });
  expect(JSON.parse(json.stdout)).toEqual(lineage);
  const graph = await run(['lineage', '/m', '--graph', 'dot'], { GetLineage });
  expect(graph.stdout).toMatch(/^digraph lineage \{\n[^]*label="train\[2\]\\npln_00000000000a\\nfailed"/);
  const both = await run(['lineage', '/m', '--graph', 'svg', '-o', 'json'], { GetLineage });
  expect(both.stderr).toContain('--graph and -o json are two forms of the answer; choose one');
  const relative = await run(['lineage', './m/../n'], { GetLineage });
  expect(relative.requests).toMatchObject([{ request: { subject: expect.stringMatching(/^\/[^.]*\/n$/) } }]);
});

test('a run is stopped, and repeated from a step', async () => {
  const stopped = await run(['pipeline', 'stop', id, '--reason', 'enough'], { StopPipeline: answer });
  expect(stopped.stdout).toBe(`${id} starts no more steps; those under finally still run.\n`);
  expect(stopped.requests).toMatchObject([{ request: { run: id, reason: 'enough' } }]);
  const again = await run(['pipeline', 'rerun', id, '--from', 'train'], { RerunPipeline: answer });
  expect(again.stdout).toBe(`${id}\n`);
  expect(again.requests).toMatchObject([{ request: { run: id, fromStep: 'train', noCache: false } }]);
});

test('a pipeline is exported, and what does not map is named', async () => {
  const file = pipelineFile(`${text}project: lab\n`);
  const args = ['pipeline', 'export', '-f', file, '--to'];
  const dag = await run([...args, 'airflow'], {});
  expect(dag.stdout).toContain('dag_id="vision"');
  expect(dag.stderr).toBe('does not map: project: use of GPUs is not accounted by project\n');
  expect(dag.stdout).toContain('#   project: use of GPUs is not accounted by project\n');
  const imageless = await run([...args, 'kubeflow'], {});
  expect(imageless.exitCode).toBe(exitCodes.usage);
  expect(imageless.stderr).toContain('these steps have no image: train, report');
  const output = join(temporaryDir(), 'vision.yaml');
  const written = await run([...args, 'kubeflow', '--image', 'python:3.12', '-o', output, '--json'], {});
  const exported = JSON.parse(written.stdout) as { text: string; unmapped: readonly object[] };
  expect(readFileSync(output, 'utf8')).toBe(exported.text);
  expect(parse(exported.text)).toMatchObject({ pipelineInfo: { name: 'vision' }, schemaVersion: '2.1.0' });
  expect(exported.unmapped).toContainEqual({ step: null, key: 'project', why: expect.any(String) });
  const unknown = await run([...args, 'argo'], {});
  expect(unknown.stderr).toContain('kubeflow, airflow');
  const nowhere = await run([...args, 'airflow', '-o', '/nonexistent/x.py'], {});
  expect(nowhere.stderr).toContain('cannot write /nonexistent/x.py');
  expect([...dag.requests, ...written.requests]).toEqual([]);
});
