/**
 * Programs that print tens of thousands of lines of metrics a second: what is known of them afterwards, how old the newest value is
 * while they run, how long after their end the last one is there, and what agent and coordinator spend. Once in each run the least loss,
 * the least loss of an evaluation, the greatest norm of the gradient and a NaN are printed, at steps of their own. Floor of the same
 * run: the same lines, read from a file and parsed as JSON in one process that keeps extremes only.
 *
 *     npm run build && node bench/rowRates.ts [seconds] [rate ...]
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isTerminal } from '@muster/common/states';
import type { TrainingMetricName, TrainingSummary } from '@muster/common/training';
import {
  type BenchCluster,
  cpuByRole,
  quietMachine,
  report,
  reportMachine,
  rounded,
  startCluster,
  summary,
} from './support.ts';

const seconds = Number(process.argv[2] ?? 60);
const rates = process.argv.length > 3 ? process.argv.slice(3).map(Number) : [10_000, 30_000];
/** Until the last value is there. */
const patienceMs = 120_000;

function lineOf(step: number, middle: number): string {
  const loss = step === middle ? '0.01' : step === middle + 1 ? 'NaN' : (1 + (step % 100) / 1000).toFixed(4);
  const norm = step === middle + 3 ? 999 : 1;
  const evaluation =
    step === middle + 2 ? ', "eval_loss": 0.1' : step % 1000 === 0 ? ', "eval_loss": 0.5' : '';
  return `{"step": ${step}, "loss": ${loss}, "grad_norm": ${norm}${evaluation}}\n`;
}

function program(count: number, perSecond: number): readonly string[] {
  const text = `
    const line = ${lineOf.toString()};
    const startedMs = Date.now();
    let step = 0;
    const print = () => {
      const due = Math.min(${count}, ((Date.now() - startedMs) * ${perSecond}) / 1000);
      let lines = '';
      for (; step < due; step += 1) lines += line(step, ${count / 2});
      process.stdout.write(lines, () => step < ${count} && setTimeout(print, 10));
    };
    print();`;
  return [process.execPath, '-e', text];
}

async function summaryOf(
  { api }: BenchCluster,
  jobId: string,
): Promise<(name: TrainingMetricName) => TrainingSummary | undefined> {
  const { metrics } = await api.summarizeTraining({ jobId });
  return (name) => metrics.find((each) => each.name === name);
}

async function measure(cluster: BenchCluster, perSecond: number): Promise<boolean> {
  const count = seconds * perSecond;
  const middle = count / 2;
  const before = cpuByRole(cluster);
  const spec = { command: program(count, perSecond), workdir: tmpdir() };
  const { jobIds } = await cluster.api.submit({
    specJson: JSON.stringify(spec),
    requestId: `rows-${perSecond}-${process.pid}`,
  });
  const [jobId = ''] = jobIds;
  const agesMs: number[] = [];
  let firstMs: number | null = null;
  let endedMs = 0;
  while (endedMs === 0) {
    await delay(500);
    const askedMs = performance.now();
    const last = (await summaryOf(cluster, jobId))('step')?.last ?? null;
    if (last !== null) firstMs ??= askedMs - (last / perSecond) * 1_000;
    // When the program had printed the newest step that is known, if it keeps to its rate.
    const isRunning = firstMs !== null && askedMs - firstMs < seconds * 1_000;
    if (isRunning && last !== null) agesMs.push(askedMs - (firstMs ?? 0) - (last / perSecond) * 1_000);
    if (isTerminal((await cluster.api.getJob(jobId)).state)) endedMs = performance.now();
  }
  let of = await summaryOf(cluster, jobId);
  while (of('step')?.last !== count - 1 && performance.now() - endedMs < patienceMs) {
    await delay(50);
    of = await summaryOf(cluster, jobId);
  }
  const lastAfterMs = performance.now() - endedMs;
  const after = cpuByRole(cluster);
  const [loss, evaluation, norm] = [of('train_loss'), of('eval_loss'), of('grad_norm')];
  const exact = {
    last: of('step')?.last === count - 1,
    least: loss?.least === 0.01 && loss.leastStep === middle,
    greatest: norm?.greatest === 999 && norm.greatestStep === middle + 3,
    evaluation: evaluation?.best === 0.1 && evaluation.bestStep === middle + 2,
    nan: loss?.notFinite === 1 && loss.notFiniteStep === middle + 1,
    counts: (loss?.rows ?? 0) + (loss?.omitted ?? 0) === count,
  };
  const perMillion = (cpuMs: number) => rounded((cpuMs / count) * 1e6);
  report(`${perSecond} rows/s for ${seconds} s`, {
    exact,
    kept: loss?.rows,
    omitted: loss?.omitted,
    ageOfNewestMs: summary(agesMs),
    lastAfterEndMs: rounded(lastAfterMs),
    agentCpuMsPerMillion: perMillion(after.agents - before.agents),
    coordinatorCpuMsPerMillion: perMillion(after.coordinator - before.coordinator),
  });
  return Object.values(exact).every(Boolean);
}

function floor(count: number): void {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'));
  try {
    const path = join(directory, 'lines');
    writeFileSync(path, Array.from({ length: count }, (_, step) => lineOf(step, count / 2)).join(''));
    const before = process.cpuUsage();
    let least = Number.POSITIVE_INFINITY;
    for (const text of readFileSync(path, 'utf8').split('\n')) {
      if (text === '' || text.includes('NaN')) continue;
      const { loss } = JSON.parse(text) as { readonly loss: number };
      if (loss < least) least = loss;
    }
    const { user, system } = process.cpuUsage(before);
    report('floor: the same lines parsed from a file', {
      least,
      cpuMsPerMillion: rounded(((user + system) / 1_000 / count) * 1e6),
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

reportMachine();
report('others', { busyPercent: await quietMachine(20) });
floor(500_000);
const cluster = await startCluster(1, 0);
try {
  for (const rate of rates) if (!(await measure(cluster, rate))) process.exitCode = 1;
} finally {
  await cluster.stop();
}
