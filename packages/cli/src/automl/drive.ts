/**
 * Brings an AutoML run forward: profile, sweep, finish. It keeps nothing of its own: what has been done is found by the names of the
 * jobs and of the sweep, which follow from the task, so that the same command continues a run whatever was killed meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AutomlContext } from '@muster/advice/automl/automlFields';
import {
  type AutomlFacts,
  type AutomlJob,
  type AutomlPlan,
  automlPlan,
} from '@muster/advice/automl/automlPlan';
import { unlessAborted } from '@muster/common/async';
import { MusterError } from '@muster/common/errors';
import { encodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import { checkJobSpec } from '@muster/common/spec/validate';
import { hasSweepEnded, type SweepView } from '@muster/common/sweeps';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { readSweep, sweepToFile } from '@muster/experiments/file/sweepFile';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { statusText } from '../jobs/summary.ts';
import { waitForJob } from '../jobs/wait.ts';
import type { Progress } from '../output/screen.ts';
import { outagePatienceMs, type Session } from '../session.ts';
import { asSentFromHere } from '../submit/spec.ts';
import { type AutomlOutcome, type AutomlProfile, errorLineIn, outcomeIn, profileIn } from './workerLines.ts';

export interface AutomlRun {
  readonly id: string;
  readonly task: AutomlContext;
  /** See `automlPlan`. */
  readonly program: string;
  /** As `exportChoice` returns it. */
  readonly exports: string | undefined;
}

export interface AutomlEnd {
  readonly plan: AutomlPlan;
  readonly profile: AutomlProfile;
  readonly sweep: SweepView;
  readonly outcome: AutomlOutcome;
}

/** How often the sweep is looked at: its trials take seconds at least. */
const lookMs = 1_000;
/** The worker writes one line at its end, which may be long. */
const tailLines = 50;

interface Driving {
  readonly context: Context;
  readonly session: Session;
  readonly run: AutomlRun;
  readonly progress: Progress;
  readonly abort: AbortSignal;
}

/**
 * @param onProfile receives the profile of the data once it is known
 * @returns null: aborted; everything that was started keeps running
 * @throws {CliError} a step has failed, with what the worker wrote
 */
export async function driveAutoml(
  driving: Driving,
  onProfile: (profile: AutomlProfile) => Promise<void>,
): Promise<AutomlEnd | null> {
  const { run } = driving;
  const planOf = (facts: AutomlFacts | null) => automlPlan(run.task, { ...run, facts });
  const profiled = await finishedJob(driving, planOf(null).profile, 0);
  if (profiled === null) return null;
  const profile = profileIn(profiled.output);
  if (profile === null) throw unread(driving, profiled.job);
  await onProfile(profile);
  const plan = planOf(profile);
  const sweep = await endedSweep(driving, plan);
  if (sweep === null) return null;
  if (sweep.complete === 0) throw noneComplete(driving, sweep);
  // An extended sweep has more trials than an earlier report.
  const finished = await finishedJob(driving, plan.finish, sweep.endedAtMs ?? 0);
  if (finished === null) return null;
  const outcome = outcomeIn(finished.output);
  if (outcome === null) throw unread(driving, finished.job);
  return { plan, profile, sweep, outcome };
}

/** @param sinceMs an earlier job of that name does not count */
async function finishedJob(
  driving: Driving,
  file: AutomlJob,
  sinceMs: number,
): Promise<{ readonly job: JobView; readonly output: string } | null> {
  const { session, progress, abort } = driving;
  const jobId = await patiently(driving, (api) => foundOrSubmitted(driving, api, file, sinceMs));
  if (jobId === null) return null;
  const job = await waitForJob(session, jobId, {
    onChange: (now) => progress.show(statusText(now)),
    onAway: ({ message }) => progress.show(`${message}; reconnecting`),
    abort,
  });
  if (job === null) return null;
  const output = await patiently(driving, (api) => outputOf(api, jobId));
  if (output === null) return null;
  if (job.state !== 'succeeded') throw stepFailed(driving, job, output);
  return { job, output };
}

async function foundOrSubmitted(
  { context, run: { exports } }: Driving,
  api: MusterApi,
  file: AutomlJob,
  sinceMs: number,
): Promise<string> {
  const { jobs } = await api.listJobs({ name: file.name, limit: 1_000 });
  const usable = jobs.find(
    ({ state, submittedAtMs }) => state !== 'failed' && state !== 'cancelled' && submittedAtMs >= sinceMs,
  );
  if (usable !== undefined) return usable.id;
  const { spec } = asSentFromHere(checked(file), context, exports);
  // Two commands at the same time ask for the same.
  const requestId = `${file.name}-${jobs.length}`;
  const { jobIds } = await api.submit({ specJson: encodeJobSpec(spec), requestId });
  const [id] = jobIds;
  if (id === undefined) throw new MusterError('internal', `the job ${file.name} was accepted without an id`);
  return id;
}

function checked(file: AutomlJob): JobSpec {
  const result = checkJobSpec(file);
  if (result.ok) return result.spec;
  throw new MusterError(
    'internal',
    `the job ${file.name} is not valid: ${result.findings[0]?.message ?? ''}`,
  );
}

async function outputOf(api: MusterApi, jobId: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  // The end of the output arrives after the end of the job: following waits for it.
  for await (const { data } of api.readLogs({ jobId, tailLines, follow: true })) pieces.push(data);
  return Buffer.concat(pieces).toString();
}

async function endedSweep(driving: Driving, plan: AutomlPlan): Promise<SweepView | null> {
  const { context, run, progress, abort } = driving;
  const { timeMs } = run.task.constraints;
  for (;;) {
    const sweep = await patiently(driving, (api) => foundOrCreated(driving, api, plan));
    if (sweep === null || hasSweepEnded(sweep.state)) return sweep;
    progress.show(sweepStatus(sweep));
    if (timeMs !== null && sweep.state === 'running' && context.clock.wallMs() - sweep.createdAtMs >= timeMs)
      await patiently(driving, (api) => api.stopSweep(sweep.id, 'the time of the AutoML run is up'));
    await unlessAborted(abort, () => sleep(lookMs, undefined, { signal: abort }));
    if (abort.aborted) return null;
  }
}

function sweepStatus({ id, running, complete, pruned, trials, best }: SweepView): string {
  const found = best?.value == null ? '' : `; best loss ${Number(best.value.toPrecision(5))}`;
  return `${id}: ${complete + pruned} of ${trials} trials, ${running} running${found}`;
}

async function foundOrCreated(
  { context, run: { exports } }: Driving,
  api: MusterApi,
  { sweep: file }: AutomlPlan,
): Promise<SweepView> {
  try {
    return await api.getSweep(file.name);
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'not_found') throw error;
  }
  const read = readSweep(file);
  if (!read.ok)
    throw new MusterError('internal', `the sweep is not valid: ${read.findings[0]?.message ?? ''}`);
  const { spec: job } = asSentFromHere(read.sweep.job, context, exports);
  const specJson = JSON.stringify(sweepToFile({ ...read.sweep, job }));
  return api.createSweep({ specJson, requestId: `${file.name}-sweep` });
}

/** @returns null: aborted */
function patiently<T>(
  { session, progress, abort }: Driving,
  operation: (api: MusterApi) => Promise<T>,
): Promise<T | null> {
  const options = {
    patienceMs: outagePatienceMs,
    onAway: ({ message }: MusterError) => progress.show(`${message}; reconnecting`),
    abort,
  };
  return unlessAborted(abort, () => session.retrying(operation, options));
}

function stepFailed({ context }: Driving, job: JobView, output: string): CliError {
  const errorLine = errorLineIn(output);
  const why = errorLine ?? job.cause?.message ?? job.state;
  const hints = errorLine === null ? [`${context.environment.programName} logs ${job.id}`] : [];
  return new CliError(
    errorLine === null ? `${job.name} (${job.id}) has ended without a result: ${why}` : why,
    {
      hints,
    },
  );
}

function unread({ context }: Driving, job: JobView): CliError {
  return new CliError(`the output of ${job.name} (${job.id}) has no result`, {
    hints: [`${context.environment.programName} logs ${job.id}`],
  });
}

function noneComplete({ context }: Driving, { id, reason, trials }: SweepView): CliError {
  const why = reason === null ? '' : `: ${reason}`;
  return new CliError(`none of ${trials} trials is complete${why}`, {
    hints: [`${context.environment.programName} sweep trials ${id}`],
  });
}
