/** Pipelines as users of the simulation write them, and what their steps promise to the checks. */
import type { JobSpecFile } from '@muster/common/spec/types';
import type { OverlapPolicy } from '@muster/common/triggers';
import { watchedDirectory } from './dataPlace.ts';
import { plainProgram } from './machine.ts';
import type { Random } from './random.ts';
import type { Submission } from './workload.ts';

export interface StepPromise {
  readonly name: string;
  readonly group: 'steps' | 'on_failure' | 'finally';
  /** How often it runs, once for each item. */
  readonly count: number;
  readonly retries: number;
  /** Names of the steps that it waits for. */
  readonly needs: readonly string[];
  /** false: it is skipped. null: it has no condition. */
  readonly holds: boolean | null;
}

export interface PipelineFile {
  readonly name: string;
  readonly specJson: string;
  readonly steps: readonly StepPromise[];
  /** What its steps run, by the name of the job. */
  readonly submissions: readonly Submission[];
}

export interface TriggerFile {
  readonly name: string;
  readonly pipeline: PipelineFile;
  readonly overlap: OverlapPolicy;
  /**
   * - `jobs`: jobs of users that have failed; `pipelines`: runs that have ended, but for those that it has led to itself
   * - `data`: files that have come to the directory
   * - `webhook`: deliveries of somebody who has its secret
   */
  readonly on: 'cron' | 'jobs' | 'pipelines' | 'data' | 'webhook';
}

/** Whether a job with this name is a trial of the sweep that is a step. */
export function isTrialName(name: string): boolean {
  return /^pipe-\d+-tune-\d+$/.test(name);
}

/** Whether the trigger by jobs is for a job with this name that has failed. */
export function concernsJob(name: string): boolean {
  return name.startsWith('job-') && name.endsWith('3');
}

const sources = {
  cron: { cron: '* * * * *' },
  jobs: { condition: "kind == 'job.failed' && job.startsWith('job-') && job.endsWith('3')" },
  pipelines: { condition: "kind == 'pipeline.ended' && data.state == 'failed'" },
  data: { directory: watchedDirectory },
  webhook: { webhook: true },
} as const;

/** What is asked of the API to create it. */
export function triggerRequest({ name, pipeline, overlap, on }: TriggerFile): object {
  return { name, specJson: pipeline.specJson, paramsJson: '', overlap, noCache: false, ...sources[on] };
}

/** @param others of them one at most is for pipelines, so that the fires of a failure do not multiply */
export function composeTrigger(
  random: Random,
  name: string,
  pipeline: PipelineFile,
  others: readonly TriggerFile[],
): TriggerFile {
  const overlap = random.pick(['skip', 'queue', 'stop_previous', 'allow'] as const);
  const drawn = random.pick(['cron', 'data', 'webhook', 'jobs', 'jobs', 'pipelines'] as const);
  const on = others.some((other) => other.on === drawn) ? 'jobs' : drawn;
  return { name, pipeline, overlap, on };
}

/**
 * One source, a fan-out over it, a fan-in, a condition, a step that reads nothing, and the two groups at the end.
 * @param gpusMax that one machine has in any case
 */
export function composePipeline(random: Random, name: string, gpusMax: number): PipelineFile {
  const width = random.between(1, 4);
  const holds = random.chance(0.5);
  const retries = random.between(0, 2);
  const shown = { type: 'directory' };
  const maybeCached = () => (random.chance(0.5) ? { cache: true } : {});
  const submissions: Submission[] = [];

  /** A step's job, whose instances all do the same. */
  const job = (step: string, count: number | null): JobSpecFile => {
    const fails = random.chance(0.12);
    const runMs = random.between(50, 3_000);
    const program = fails
      ? {
          ...plainProgram(runMs),
          exitCode: 1,
          failsAfterMs: runMs,
          succeedsFromAttempt: random.between(1, 4),
        }
      : plainProgram(runMs);
    const gpus = random.between(0, gpusMax);
    const file = {
      command: ['simulate', JSON.stringify(program)],
      resources: { gpus },
      retry: { max_attempts: random.between(1, 3), backoff: { initial: '200ms', max: '2s' } },
      stop_grace: '1s',
      prepare_timeout: '45s',
    } as const;
    const names = count === null ? [step] : Array.from({ length: count }, (_, index) => `${step}-${index}`);
    for (const each of names) {
      const jobName = `${name}-${each}`;
      submissions.push({
        name: jobName,
        requestId: name,
        file: { name: jobName, ...file },
        program,
        nodes: 1,
        gpus,
      });
    }
    return file;
  };

  const trials = random.between(1, 3);
  const items = Array.from({ length: width }, (_, index) => index);
  const file = {
    name,
    artifacts: '/shared/artifacts',
    params: { flag: holds },
    ...(random.chance(0.4) && { parallel: random.between(1, 3) }),
    steps: {
      make: { job: job('make', null), outputs: { data: shown }, ...maybeCached() },
      spread: {
        job: job('spread', width),
        for_each: items,
        inputs: { data: 'make.data' },
        outputs: { part: shown },
        retries: { max: retries },
        ...maybeCached(),
      },
      gather: { job: job('gather', null), inputs: { parts: 'spread.part' }, when: 'flag' },
      tune: {
        sweep: {
          sampler: 'random',
          trials,
          objective: { metric: 'eval_loss' },
          parameters: { x: { type: 'float', min: 0, max: 1 } },
          job: job('tune', trials),
        },
        after: 'make',
        retries: { max: 1 },
      },
      report: { job: job('report', null), after: 'spread', timeout: random.pick(['20s', '1h']) },
    },
    on_failure: { alarm: { job: job('alarm', null) } },
    finally: { tidy: { job: job('tidy', null), retries: { max: 1 } } },
  };
  const usual = { group: 'steps', count: 1, retries: 0, needs: [], holds: null } as const;
  return {
    name,
    specJson: JSON.stringify(file),
    steps: [
      { ...usual, name: 'make' },
      { ...usual, name: 'spread', count: width, retries, needs: ['make'] },
      { ...usual, name: 'gather', needs: ['spread'], holds },
      { ...usual, name: 'tune', retries: 1, needs: ['make'] },
      { ...usual, name: 'report', needs: ['spread'] },
      { ...usual, name: 'alarm', group: 'on_failure' },
      { ...usual, name: 'tidy', group: 'finally', retries: 1 },
    ],
    submissions,
  };
}
