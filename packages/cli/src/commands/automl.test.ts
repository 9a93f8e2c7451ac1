import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { MusterError } from '@muster/common/errors';
import type { SweepView } from '@muster/common/sweeps';
import { sweepToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { type Answers, aCluster, aJob, logPiece, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const profile =
  'automl profile: {"task": "regression", "metric": "rmse", "rows": 200, "libraries": ["xgboost"], "notes": ["\\"id\\" is not used"]}\n';
const result =
  'automl result: {"trials": 2, "metric": "rmse", "members": 2, "best": {"trial": 1, "params": {"model": "linear", "linear_strength": 0.123456}, ' +
  '"validation": 1.5}, "test": {"ensemble": 1.25, "best": 1.5, "baseline": 4}, "report": "/data/a.csv.automl/report.html"}\n';

const args = ['automl', '--data', '/data/a.csv', '--target', 'y', '--trials', '2'];

/** A coordinator on which every job that is submitted has succeeded at once, with the output that belongs to its step. */
function cluster(outputs: Readonly<Record<string, string>>, state: 'succeeded' | 'failed' = 'succeeded') {
  const jobs = new Map<string, ReturnType<typeof aJob>>();
  let sweep: SweepView | null = null;
  const jobOf = (id: string) => jobs.get(id) ?? aJob();
  const answers = {
    ListJobs: ({ name }: { name: string }) => ({
      jobs: [...jobs.values()].filter((job) => job.name === name).map(wire.job),
    }),
    Submit: ({ specJson }: { specJson: string }) => {
      const spec = JSON.parse(specJson) as { name: string };
      const id = `job_00000000000${jobs.size}`;
      jobs.set(id, aJob({ id, name: spec.name, state, spec, submittedAtMs: submittedAtMs + 10 }));
      return { jobIds: [id] };
    },
    GetCluster: () => aCluster(),
    GetJob: ({ jobId }: { jobId: string }) => wire.job(jobOf(jobId)),
    async *ReadLogs({ jobId }: { jobId: string }) {
      const step = jobOf(jobId).name.split('-').at(-1) ?? '';
      yield logPiece(outputs[step] ?? '');
    },
    GetSweep: () => {
      if (sweep === null) throw new MusterError('not_found', 'no sweep');
      return sweepToWire(sweep);
    },
    CreateSweep: ({ specJson }: { specJson: string }) => {
      sweep = { ...ended, spec: JSON.parse(specJson) as SweepView['spec'] };
      return sweepToWire(sweep);
    },
  } as unknown as Answers;
  return answers;
}

const ended: SweepView = {
  id: 'swp_00000000000a',
  name: 'automl',
  user: 'ann',
  project: 'default',
  state: 'done',
  reason: null,
  spec: {},
  createdAtMs: submittedAtMs,
  endedAtMs: submittedAtMs + 5,
  trials: 2,
  running: 0,
  complete: 2,
  paused: 0,
  incomplete: 0,
  awaits: null,
  pruned: 0,
  infeasible: 0,
  failed: 0,
  stopped: 0,
  best: null,
  use: null,
};

test('a run is a job, a sweep and a job; the same command finds them again', async () => {
  const answers = cluster({ profile, finish: result });
  const { stdout, stderr, requests, exitCode } = await run(args, answers);
  expect(exitCode).toBe(0);
  expect(stderr).toBe('200 rows, regression, compared by rmse\n"id" is not used\n');
  expect(stdout).toContain('1, linear: rmse 1.5 in validation');
  expect(stdout).toContain('rmse 1.25; best trial 1.5, without a model 4');
  expect(stdout).toContain('/data/a.csv.automl/report.md');
  const submits = requests.filter(({ method }) => method === 'Submit').map(({ request }) => request);
  const specs = submits.map(
    (each) => JSON.parse((each as { specJson: string }).specJson) as Record<string, never>,
  );
  expect(specs.map((spec) => spec['labels']?.['muster.automl.step'])).toEqual(['profile', 'finish']);
  const program = JSON.parse(
    inflateSync(Buffer.from(String(specs[0]?.['env']?.['MUSTER_AUTOML_PROGRAM']), 'base64')).toString(),
  ) as Record<string, string>;
  expect(program['__main__.py']).toContain('muster_automl profile | trial | finish | predict');
  const created = requests.find(({ method }) => method === 'CreateSweep')?.request as { specJson: string };
  expect(JSON.parse(created.specJson)).toMatchObject({
    parameters: { model: { values: expect.arrayContaining(['xgboost']) } },
  });

  const again = await run([...args, '-o', 'json'], answers);
  expect(again.requests.map(({ method }) => method)).not.toContain('Submit');
  expect(JSON.parse(again.stdout)).toMatchObject({
    sweepId: ended.id,
    tuning_results: { best_score: 1.5, trials_completed: 2, best_params: { model: 'linear' } },
  });
});

test('what the worker refuses is the error of the command, and the next call tries again', async () => {
  const answers = cluster({ profile: 'automl: error: /data/a.csv: no column "y"; columns: "z"\n' }, 'failed');
  const first = await run(args, answers);
  expect(first).toMatchObject({
    exitCode: exitCodes.refused,
    stderr: 'muster: /data/a.csv: no column "y"; columns: "z"\n',
  });
  const second = await run(args, answers);
  expect(second.requests.filter(({ method }) => method === 'Submit')).toHaveLength(1);
  const crashed = await run(args, cluster({ profile: 'Killed\n' }, 'failed'));
  expect(crashed.stderr).toMatch(/^muster: automl-\w{10}-profile \(job_0{12}\) has ended without a result: /);
  expect(crashed.stderr).toContain('muster logs job_000000000000');
});

test('flags win over the file, and what is wrong has its place', async () => {
  const dir = temporaryDir();
  const file = join(dir, 'task.yaml');
  writeFileSync(
    file,
    'task_type: setup_automl\ntraining_context:\n  data: {path: t.csv, target: y}\n  constraints: {trials: 5, time: 30m}\n',
  );
  const plan = await run(
    ['automl', '-f', file, '--trials', '7', '--model', 'linear', '--dry-run', '-o', 'json'],
    {},
  );
  expect(JSON.parse(plan.stdout)).toMatchObject({
    models: ['linear'],
    sweep: { trials: 7, job: { max_runtime: '30m' } },
  });
  expect(plan.requests).toEqual([]);
  const wrong = await run(['automl', '-f', file, '--trials', '0', '--metric', 'best'], {});
  expect(wrong.exitCode).toBe(exitCodes.usage);
  expect(wrong.stderr).toContain('not a valid AutoML task: 2 problems');
  expect(wrong.stderr).toContain('--trials  got 0; expected a whole number from 1 to 10000');

  const written = await run(['automl', '-f', file, '--write', join(dir, 'plan')], {});
  expect(written.stdout).toContain('linear, forest, extra_trees, boosting, mlp');
  expect(existsSync(join(dir, 'plan/pipeline.json'))).toBe(true);
  expect(JSON.parse(readFileSync(join(dir, 'plan/sweep.json'), 'utf8'))).toMatchObject({ trials: 5 });
});
