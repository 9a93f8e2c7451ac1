import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import type { SweepView, TrialView } from '@muster/common/sweeps';
import { sweepToWire, trialToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run, temporaryDir } from '../testing/testContext.ts';

const id = 'swp_00000000000a';
const text = `name: tune
trials: 20
objective: {metric: eval_loss}
parameters:
  lr: {type: float, min: 1e-5, max: 1e-1, log: true}
  optimizer: [adam, sgd]
constraints:
  - lr < 0.05
job:
  command: [python, train.py, "--lr={lr}"]
  env: {VERSION: 1.10}
`;
const trial: TrialView = {
  number: 3,
  state: 'complete',
  params: { lr: 0.0123456789, optimizer: 'adam, w' },
  jobId: 'job_00000000000b',
  earlierJobs: [],
  value: 0.251234567,
  deviation: null,
  furtherValues: [],
  furtherDeviations: [],
  seeds: [],
  step: 100,
  cause: null,
  lost: null,
  awaits: null,
  startedAtMs: submittedAtMs,
  endedAtMs: submittedAtMs + 60_000,
};
const failed: TrialView = {
  ...trial,
  number: 4,
  state: 'failed',
  params: { lr: 1 },
  value: null,
  step: null,
  cause: 'exit_code',
};
const sweep: SweepView = {
  id,
  name: 'tune',
  user: 'ann',
  project: 'default',
  paused: 1,
  state: 'running',
  reason: null,
  spec: {
    name: 'tune',
    sampler: 'tpe',
    seed: 7,
    trials: 20,
    objective: { metric: 'eval_loss', goal: 'min', of: 'last' },
    parameters: { lr: { type: 'float', min: 0, max: 1 }, optimizer: { values: ['adam, w', 'sgd'] } },
    job: { name: 'train', command: ['python', 'train.py', '--lr={lr}'], priority: 50 },
  },
  createdAtMs: submittedAtMs,
  endedAtMs: null,
  trials: 20,
  running: 2,
  complete: 3,
  incomplete: 0,
  awaits: null,
  pruned: 4,
  infeasible: 0,
  failed: 1,
  stopped: 0,
  best: trial,
  use: {
    trials: 2,
    trialsLimit: 20,
    gpuHours: 3.5,
    gpuHoursLimit: 100,
    usd: null,
    usdLimit: null,
    wallClockHours: 1.25,
    wallClockHoursLimit: null,
  },
};
const GetSweep = () => sweepToWire(sweep);
const ListTrials = () => ({ trials: [trial, failed].map(trialToWire), more: false });

const lossCurve = {
  unit: 'loss',
  series: [
    {
      attempt: 1,
      nodeRank: 0,
      node: 'node-1',
      gpuUuid: '',
      points: [3, 2, 1].map((value, index) => ({ atMs: submittedAtMs + index, value, step: index * 10 })),
    },
  ],
};

function sweepFile(content: string): string {
  const path = join(temporaryDir(), 'sweep.yaml');
  writeFileSync(path, content);
  return path;
}

test('a sweep file is checked and sent as JSON, with what a job gets of the shell', async () => {
  const { stdout, stderr, requests } = await run(['sweep', '-f', sweepFile(text)], { CreateSweep: GetSweep });
  expect(stdout).toBe(`${id}\n`);
  expect(stderr).toContain('The job names {optimizer} nowhere: its program must read MUSTER_TRIAL_PARAMS.');
  const [{ request } = { request: {} }] = requests;
  const sent = JSON.parse((request as { specJson: string }).specJson) as SweepView['spec'];
  expect(sent).toMatchObject({
    name: 'tune',
    sampler: 'tpe',
    parameters: { optimizer: { values: ['adam', 'sgd'] } },
    // As it was written, as in a job file.
    job: { env: { VERSION: '1.10' }, workdir: expect.stringMatching(/^\//) },
  });
  const dry = await run(['sweep', '-f', sweepFile(text), '--dry-run'], { CreateSweep: GetSweep });
  expect(dry.stdout).toBe('The sweep is valid: 20 trials.\n');
  expect(dry.requests).toMatchObject([{ request: { dryRun: true } }]);
});

test('what is wrong with a sweep file is shown with its place, whoever finds it', async () => {
  const wrong = sweepFile(text.replace('trials: 20', 'trails: 20').replace('eval_loss', 'eval_los'));
  const refused = await run(['sweep', '-f', wrong], {});
  expect(refused.exitCode).toBe(exitCodes.usage);
  expect(refused.stderr).toContain(`${wrong}:2:1  trails: unknown key; did you mean "trials"?`);
  expect(refused.stderr).toContain(`${wrong}:3:21  objective.metric: got "eval_los"`);
  expect(refused.requests).toEqual([]);
  const problem = {
    path: 'constraints[0]',
    message: 'column 1: unknown name',
    expected: null,
    suggestion: null,
  };
  const file = sweepFile(text);
  const CreateSweep = () => {
    throw new MusterError('invalid', 'constraints[0]: …', { problems: [problem] });
  };
  const later = await run(['sweep', '-f', file], { CreateSweep });
  expect(later.stderr).toContain(`${file}:8:5  constraints[0]: column 1: unknown name`);
});

test('a sweep is shown with its progress and its best trial', async () => {
  const { stdout } = await run(['sweep', 'show', 'tune'], { GetSweep, ListTrials });
  expect(stdout).toContain('Objective:    min eval_loss, last\n');
  expect(stdout).toContain('Trials:       at most 20: 3 complete, 2 running, 1 paused, 4 pruned, 1 failed\n');
  expect(stdout).toContain('Used:         2 of 20 trials, 3.5 of 100 GPU-hours, 1 h 15 min\n');
  expect(stdout).toContain('Best:         trial 3, job_00000000000b: 0.25123\n');
  const json = await run(['sweep', 'show', 'tune', '-o', 'json'], { GetSweep });
  expect(JSON.parse(json.stdout)).toEqual(sweep);
  const list = await run(['sweep', 'list'], {
    ListSweeps: () => ({ sweeps: [sweepToWire(sweep)], more: true }),
  });
  expect(list.stdout).toMatch(/swp_00000000000a +tune +running +8\/20 +0\.25123 +ann/);
  expect(list.stderr).toBe('There are older sweeps, which are not shown.\n');
});

test('trials are a table, JSON or CSV', async () => {
  const table = await run(['sweep', 'trials', id], { ListTrials });
  expect(table.stdout).toMatch(/3 +complete +0\.25123 +job_00000000000b +- +lr=0\.012346 optimizer=adam, w/);
  const json = await run(['sweep', 'trials', id, '-o', 'json'], { ListTrials });
  expect(JSON.parse(json.stdout)).toEqual({ trials: [trial, failed] });
  const csv = await run(['sweep', 'trials', id, '--csv'], { ListTrials });
  expect(csv.stdout.split('\r\n')).toEqual([
    'number,state,value,step,cause,lost,jobId,startedAtMs,endedAtMs,params.lr,params.optimizer',
    `3,complete,0.251234567,100,,,job_00000000000b,${submittedAtMs},${submittedAtMs + 60_000},0.0123456789,"adam, w"`,
    `4,failed,,,exit_code,,job_00000000000b,${submittedAtMs},${submittedAtMs + 60_000},1,`,
    '',
  ]);
});

test('what a trial waits for, and what it has lost, stands where its cause would', async () => {
  const awaits = 'the last metrics of attempt 1 from node-2';
  const lost = 'metrics of attempt 1 are lost: node-2 no longer has them';
  const waiting = { ...failed, number: 5, state: 'running', cause: null, awaits } as const;
  const incomplete = { ...trial, number: 6, state: 'incomplete', lost } as const;
  const answers = {
    ListTrials: async () => ({ trials: [waiting, incomplete].map(trialToWire), more: false }),
    GetSweep: async () => sweepToWire({ ...sweep, incomplete: 2, awaits: `trial 5: ${awaits}` }),
  };
  const table = await run(['sweep', 'trials', id], answers);
  expect(table.stdout).toMatch(
    /5 +running +- +job_00000000000b +waits for the last metrics of attempt 1 from/,
  );
  expect(table.stdout).toMatch(
    /6 +incomplete +0\.25123 +job_00000000000b +metrics of attempt 1 are lost: node-2/,
  );
  const shown = await run(['sweep', 'show', id], answers);
  expect(shown.stdout).toContain(`Waits for:    trial 5: ${awaits}\n`);
  expect(shown.stdout).toMatch(
    /^Incomplete: +2 trials have lost metrics and do not count as complete; a sweep/m,
  );
});

test('parameters are shown by how much they matter', async () => {
  const many = Array.from({ length: 30 }, (_, number) => {
    const lr = ((number * 7) % 30) / 30;
    return { ...trial, number, params: { lr, optimizer: number % 2 === 0 ? 'sgd' : 'adam, w' }, value: lr };
  });
  const answers = { GetSweep, ListTrials: () => ({ trials: many.map(trialToWire), more: false }) };
  const { stdout } = await run(['sweep', 'importance', id], answers);
  expect(stdout).toMatch(/PARAMETER +IMPORTANCE\nlr +\d+ %\noptimizer +\d %\n/);
  expect(stdout).toContain('variance between 30 complete trials');
  const json = await run(['sweep', 'importance', id, '-o', 'json'], answers);
  expect(JSON.parse(json.stdout)).toMatchObject({ trials: 30, parameters: [{ name: 'lr' }, {}] });
  expect((await run(['sweep', 'show', id], answers)).stdout).toMatch(/Importance: +lr \d+ %/);
  const few = await run(['sweep', 'importance', id], { GetSweep, ListTrials });
  expect(few.stdout).toBe('1 trials are complete; importance needs 8.\n');
});

test('a sweep is drawn as one page, or one plot as SVG, to stdout or a file', async () => {
  const answers = { GetSweep, ListTrials, QueryMetrics: () => wire.metrics(lossCurve) };
  const page = await run(['sweep', 'plot', id], answers);
  expect(page.stdout).toMatch(/^<!doctype html>/);
  expect(page.stdout.match(/<svg /g)).toHaveLength(4);
  expect(page.stdout).toContain('Learning curves: eval_loss');
  const file = join(temporaryDir(), 'history.svg');
  const one = await run(['sweep', 'plot', id, '-o', file, '--plot', 'history'], { GetSweep, ListTrials });
  expect([one.exitCode, one.stdout]).toEqual([exitCodes.ok, '']);
  expect(readFileSync(file, 'utf8')).toMatch(/^<\?xml .*\n<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  const several = await run(['sweep', 'plot', id, '-o', file], {});
  expect(several.stderr).toContain('has room for one plot');
  const html = await run(['sweep', 'plot', id, '-o', 'x.html', '--plot', 'history'], {});
  expect(html.stderr).toContain('--plot writes SVG, and not x.html');
  const nowhere = join(temporaryDir(), 'none', 'x.html');
  const lost = await run(['sweep', 'plot', id, '-o', nowhere], answers);
  expect(lost.stderr).toContain(`cannot write ${nowhere}`);
});

test('the best trial becomes a job file, without what makes it a trial', async () => {
  const { stdout } = await run(['sweep', 'best', id, '--job-file'], { GetSweep });
  expect(JSON.parse(stdout)).toMatchObject({
    name: 'train-3',
    command: ['python', 'train.py', '--lr={lr}'],
    params: { lr: 0.0123456789, optimizer: 'adam, w' },
  });
  expect(stdout).not.toContain('muster.sweep');
  const none = await run(['sweep', 'best', id], { GetSweep: () => sweepToWire({ ...sweep, best: null }) });
  expect(none.stderr).toContain(`no trial of ${id} has a value yet`);
});

test('with several objectives the front is best, and one of its trials becomes a job file', async () => {
  const objectives = [
    { metric: 'eval_loss', goal: 'min', of: 'last' },
    { metric: 'tokens_per_second', goal: 'max', of: 'last' },
  ];
  const several = { ...sweep, spec: { ...sweep.spec, objectives } };
  const all = [
    { ...trial, number: 0, value: 0.5, furtherValues: [100] },
    { ...trial, number: 1, value: 0.5, furtherValues: [90] },
    { ...trial, number: 2, value: 0.6, furtherValues: [200] },
  ];
  const answers = {
    GetSweep: () => sweepToWire(several),
    ListTrials: () => ({ trials: all.map(trialToWire), more: false }),
  };
  const { stdout } = await run(['sweep', 'best', id], answers);
  expect(stdout.split('\n').slice(1)).toEqual([
    expect.stringMatching(/^ +0 +complete +0\.5, 100 /),
    expect.stringMatching(/^ +2 +complete +0\.6, 200 /),
    '',
  ]);
  const json = await run(['sweep', 'best', id, '-o', 'json'], answers);
  expect(JSON.parse(json.stdout)).toEqual({ trials: [all[0], all[2]] });
  expect((await run(['sweep', 'best', id, '--job-file'], answers)).stderr).toContain('no single best trial');
  const file = await run(['sweep', 'best', id, '--job-file', '--trial', '2'], answers);
  expect(JSON.parse(file.stdout)).toMatchObject({ name: 'train-2' });
  expect((await run(['sweep', 'best', id, '--trial', '7'], answers)).stderr).toContain('has no trial 7');
  expect((await run(['sweep', 'show', id], answers)).stdout).toContain(
    'min eval_loss, last; max tokens_per_second, last',
  );
  const csv = await run(['sweep', 'trials', id, '--csv'], answers);
  expect(csv.stdout).toMatch(/endedAtMs,furtherValues\.0,params\.lr.*\r\n.*,100,0\.0123456789/);
});

test('a sweep is stopped, and extended by a number', async () => {
  const stopped = await run(['sweep', 'stop', id, '--reason', 'enough'], { StopSweep: GetSweep });
  expect(stopped.stdout).toBe(`${id} starts no more trials; 2 of them still end.\n`);
  expect(stopped.requests).toMatchObject([{ request: { sweep: id, reason: 'enough' } }]);
  const extended = await run(['sweep', 'extend', id, '5'], { ExtendSweep: GetSweep });
  expect(extended.stdout).toBe(`${id} will have 20 trials.\n`);
  expect(extended.requests).toMatchObject([{ request: { sweep: id, trials: 5 } }]);
  expect((await run(['sweep', 'extend', id, '0'], {})).exitCode).toBe(exitCodes.usage);
  expect((await run(['sweep'], {})).stderr).toContain('give the sweep file with -f');
});

test('with seeds a value is a mean with its deviation, and failed seeds are told by cause', async () => {
  const one = { seed: 0, jobId: 'job_a', state: 'complete', furtherValues: [], step: 1 } as const;
  const seeds = [
    { ...one, value: 0.5, cause: null, lost: null },
    { ...one, seed: 1, value: 0.7, cause: null, lost: null },
  ];
  const lost = [
    ...seeds,
    { ...one, seed: 2, state: 'failed', value: null, cause: 'exit_code', lost: null } as const,
  ];
  const trials = [
    { ...trial, number: 0, value: 0.6, deviation: 0.1414213, seeds },
    { ...failed, number: 1, seeds: lost },
  ];
  const answers = { ListTrials: () => ({ trials: trials.map(trialToWire), more: false }) };
  const shown = await run(['sweep', 'trials', id], answers);
  expect(shown.stdout).toMatch(/0 +complete +0\.6 ± 0\.14142 +job_\w+ +2\/2 +- /);
  expect(shown.stdout).toMatch(/1 +failed +- +job_\w+ +2\/3 +1 exit_code /);
  const csv = await run(['sweep', 'trials', id, '--csv'], answers);
  expect(csv.stdout).toMatch(/endedAtMs,deviation,seeds,params\.lr.*\r\n.*,0\.1414213,2\/2,0\.0123456789/);
});
