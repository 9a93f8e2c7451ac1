/** What a pipeline says and the program that it is exported to cannot do. Pure. */
import { isMapping } from '@muster/common/spec/path';
import type { PipelineSpec, PipelineStep } from '../model.ts';

export const exportTargets = ['kubeflow', 'airflow'] as const;
export type ExportTarget = (typeof exportTargets)[number];

export interface UnmappedSetting {
  /** null: it is of the whole pipeline. */
  readonly step: string | null;
  /** As the pipeline file names it, such as `job.resources.nodes`. */
  readonly key: string;
  readonly why: string;
}

/** Settings of a job that every target has, so far as they are plain values. */
const mapped: ReadonlySet<string> = new Set([
  'name',
  'command',
  'args',
  'env',
  'image',
  'resources.gpus',
  'resources.cpus',
  'resources.memory_mb',
]);

const reasons: Readonly<Record<string, string>> = {
  'resources.nodes': 'the step becomes one pod or process; a gang of several nodes needs a training operator',
  checkpoint: 'checkpoints are not looked after; the program must find its last one itself',
  evaluate: 'checkpoints are not looked after, so none is evaluated',
  preemptible: 'there is no preemption with time to save',
  priority: 'there is no common queue of jobs',
  retry: 'causes of failures are not told apart; only retries of the step are kept',
  secrets: 'secrets of Muster are not there; give them by the means of the target',
  launcher: 'no launcher starts the command; it is run as it is written',
  params: '{name} in the command is not replaced',
  artifacts: 'the files of a store are not moved',
  workdir: 'it has no working directory of its own',
  volumes: 'directories of nodes are not mounted',
  on_hang: 'hangs are not detected',
  on_divergence: 'divergence is not detected',
  max_runtime: 'only the timeout of the step is kept, where there is one',
  stop_grace: 'the time to stop is that of the target',
  stop_signal: 'the signal of a stop is that of the target',
};

/** What of the pipeline and its steps no target has. */
export function commonlyUnmapped(spec: PipelineSpec, isMapped: (key: string) => boolean): UnmappedSetting[] {
  const found: UnmappedSetting[] = [];
  if (spec.project !== 'default')
    found.push({ step: null, key: 'project', why: 'use of GPUs is not accounted by project' });
  if (spec.code !== null)
    found.push({ step: null, key: 'code', why: 'the code is no part of what a cache compares' });
  if (spec.artifacts?.kind === 'store')
    found.push({
      step: null,
      key: 'artifacts',
      why: 'nothing is fetched from the store or kept there; outputs are where the target keeps them',
    });
  if (spec.steps.some(({ outputs }) => outputs.length > 0))
    found.push({
      step: null,
      key: 'outputs',
      why: 'inputs are not compared with the digest of what their step has made',
    });
  return [...found, ...spec.steps.flatMap((step) => ofStep(step, isMapped))];
}

function ofStep(
  { name, work, jobSettings }: PipelineStep,
  isMapped: (key: string) => boolean,
): UnmappedSetting[] {
  const own = Object.keys(jobSettings).map((key) => ({ step: name, key, why: whyOf(key) }));
  if (work.kind === 'run') return own;
  if (work.kind === 'sweep')
    return [
      ...own,
      {
        step: name,
        key: 'sweep',
        why: 'there are no sweeps; its task fails, and those that need it do not run',
      },
    ];
  const ofJob = settingsOf(work.file).flatMap(([key, value]) => {
    if (mapped.has(key) || isMapped(key) || (key === 'resources.nodes' && value === 1)) return [];
    return [{ step: name, key: `job.${key}`, why: whyOf(key) }];
  });
  return [...own, ...ofJob];
}

function whyOf(key: string): string {
  return reasons[key] ?? reasons[key.split('.')[0] ?? ''] ?? 'it has no counterpart';
}

function settingsOf(file: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(file).flatMap(([key, value]) =>
    key === 'resources' && isMapping(value)
      ? Object.entries(value).map(([inner, each]) => [`${key}.${inner}`, each] as const)
      : [[key, value] as const],
  );
}

/** A comment of the exported file; `#` begins comments in YAML and in Python. Ends with a line break, or is empty. */
export function unmappedComment(unmapped: readonly UnmappedSetting[]): string {
  if (unmapped.length === 0) return '';
  const lines = unmapped.map(unmappedLine).map((line) => `#   ${line}`);
  return ['# What does not map:', ...lines, ''].join('\n');
}

/** On one line, whatever names hold. */
export function unmappedLine({ step, key, why }: UnmappedSetting): string {
  return `${step === null ? '' : `${step}: `}${key}: ${why}`.replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');
}
