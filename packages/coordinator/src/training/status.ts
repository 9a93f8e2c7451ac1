/** `training_status.md`: what a job does, what is safe of it and what threatens it, on one page for people. */
import type { Checkpoint } from '@muster/common/checkpoints';
import type { PhasesView } from '@muster/common/phases';
import { phaseInShort, phaseLines } from '@muster/common/phaseText';
import { resumeText } from '@muster/common/signText';
import type { TrainingMetricName, TrainingProgress } from '@muster/common/training';
import type { AttemptView, Cause, JobView, LedgerEntry } from '@muster/common/views';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { pendingReason } from '../explain/waiting.ts';
import { currentAttempt, type Job } from '../model.ts';
import type { WaitReason } from '../scheduler/reasons.ts';
import type { ClusterState } from '../state/state.ts';
import type { JobRecord } from '../store/store.ts';
import { jobView } from '../views.ts';
import { byteSize, codeSpan, figure, gpuHours, markdownText, roughDuration, stepTime } from './markdown.ts';
import { risksOf, type TrainingSurroundings } from './risks.ts';

/** The number of newest attempts that are shown, of a job with many retries. */
const attemptsShownMax = 20;

const metricNames: readonly (readonly [TrainingMetricName, string])[] = [
  ['train_loss', 'Loss'],
  ['eval_loss', 'Eval loss'],
  ['learning_rate', 'Learning rate'],
  ['grad_norm', 'Gradient norm'],
  ['epoch', 'Epoch'],
];

/** @param nowMs wall clock */
export function trainingStatus(job: JobView, around: TrainingSurroundings, nowMs: number): string {
  const sections = [
    [`# ${markdownText(job.name)}`, '', summary(job, nowMs)],
    [
      '## Training',
      '',
      ...listed(job.training === null ? [] : trainingLines(job.training, nowMs), 'Nothing was read.'),
    ],
    ...(job.phases === null ? [] : [['## Phases', '', ...listed(phasesOf(job.phases), '')]]),
    ['## Last checkpoint', '', ...listed(checkpointLines(job.checkpoints, nowMs), 'There is none.')],
    ['## Attempts', '', ...attemptTable(job.attempts, nowMs)],
    ['## GPU hours', '', ...listed(ledgerLines(job.ledger), 'None were used.')],
    ['## Risks', '', ...listed(risksOf(job, around, nowMs), 'None detected.')],
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function phasesOf(phases: PhasesView): readonly string[] {
  return [phaseInShort(phases), ...phaseLines(phases)].map(markdownText);
}

function summary(job: JobView, nowMs: number): string {
  const why = job.pending?.message ?? job.cause?.message ?? null;
  const parts = [`${codeSpan(job.id)} is **${job.state}**`, ...(why === null ? [] : [markdownText(why)])];
  return `${parts.join(': ')} (as of ${new Date(nowMs).toISOString()})`;
}

function listed(lines: readonly string[], otherwise: string): readonly string[] {
  return lines.length === 0 ? [otherwise] : lines.map((line) => `- ${line}`);
}

function trainingLines(
  { latest, totalSteps, etaMs, atMs }: TrainingProgress,
  nowMs: number,
): readonly string[] {
  const { step } = latest;
  const metrics = metricNames.flatMap(([name, title]) => {
    const value = latest[name];
    return value === undefined ? [] : [`${title}: ${figure(value)}`];
  });
  const speed = speedText(latest);
  return [
    ...(step === undefined ? [] : [`Step: ${stepText(step, totalSteps)}`]),
    ...metrics,
    ...(speed === '' ? [] : [`Speed: ${speed}`]),
    ...(etaMs === null ? [] : [`Time left: ${roughDuration(etaMs)}`]),
    `Last contact: ${roughDuration(nowMs - atMs)} ago`,
  ];
}

function stepText(step: number, totalSteps: number | null): string {
  if (totalSteps === null || totalSteps === 0) return String(step);
  return `${step} of ${totalSteps} (${Math.floor((100 * step) / totalSteps)} %)`;
}

function speedText(latest: TrainingProgress['latest']): string {
  const { samples_per_second: samples, tokens_per_second: tokens, step_seconds: seconds } = latest;
  return [
    ...(samples === undefined ? [] : [`${figure(samples)} samples/s`]),
    ...(tokens === undefined ? [] : [`${figure(tokens)} tokens/s`]),
    ...(seconds === undefined ? [] : [`${stepTime(seconds)} per step`]),
  ].join(', ');
}

function checkpointLines(checkpoints: readonly Checkpoint[], nowMs: number): readonly string[] {
  const last = checkpoints.at(-1);
  if (last === undefined) return [];
  const { name, step, bytes, savedAtMs, verdict, depth, problem } = last;
  const looked = depth === null ? verdict : `${verdict} (${depth})`;
  return [
    `${codeSpan(name)}${step === null ? '' : ` at step ${step}`}, ${byteSize(bytes)}`,
    `Saved: ${roughDuration(nowMs - savedAtMs)} ago`,
    `Verdict: ${looked}${problem === null ? '' : `: ${markdownText(problem)}`}`,
  ];
}

function attemptTable(attempts: readonly AttemptView[], nowMs: number): readonly string[] {
  if (attempts.length === 0) return ['None yet.'];
  const shown = attempts.toSorted((a, b) => b.number - a.number).slice(0, attemptsShownMax);
  const left = attempts.length - shown.length;
  return [
    '| Attempt | State | From | Ran | Cause |',
    '| --- | --- | --- | --- | --- |',
    ...shown.map((attempt) => attemptRow(attempt, nowMs)),
    ...(left === 0 ? [] : ['', `and ${left} earlier`]),
  ];
}

function attemptRow(attempt: AttemptView, nowMs: number): string {
  const { number, state, runningAtMs, endedAtMs, cause } = attempt;
  const from = markdownText(resumeText(attempt) ?? 'the beginning');
  const ran = runningAtMs === null ? '' : roughDuration((endedAtMs ?? nowMs) - runningAtMs);
  return `| ${number} | ${state} | ${from} | ${ran} | ${cause === null ? '' : causeText(cause)} |`;
}

function causeText({ kind, message }: Cause): string {
  return `${codeSpan(kind)} ${markdownText(message)}`;
}

const ledgerTitles: Readonly<Record<LedgerEntry['kind'], string>> = {
  productive: 'Productive',
  queued: 'Waited for',
  starting: 'Starting',
  preemption: 'Lost to preemption',
  rollback: 'Lost to rollback',
  hang: 'Lost to hangs',
  failure: 'Lost to failures',
};

function ledgerLines(ledger: readonly LedgerEntry[]): readonly string[] {
  return ledger
    .filter(({ gpuSeconds }) => gpuSeconds > 0)
    .map(({ kind, cause, gpuSeconds }) => {
      const title = `${ledgerTitles[kind]}${cause === null ? '' : ` (${codeSpan(cause)})`}`;
      return `${title}: ${gpuHours(gpuSeconds)}`;
    });
}

interface StatusParts {
  readonly state: Pick<ClusterState, 'nodes'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  /** Why each queued job waits. */
  readonly reasons: { get(job: Job): WaitReason | undefined };
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

/** The page of a job as it is now. */
export function statusOf(
  { state, taskStatus, reasons, wallMs, monotonicMs }: StatusParts,
  { job, attempts }: JobRecord,
): string {
  const nowMs = wallMs();
  const reason = reasons.get(job);
  const pending = reason === undefined ? undefined : pendingReason(reason, job.spec, monotonicMs());
  const view = jobView(job, attempts, pending, taskStatus, nowMs);
  return trainingStatus(view, surroundingsOf(job, taskStatus, state), nowMs);
}

function surroundingsOf(
  job: Job,
  taskStatus: Pick<TaskStatusCache, 'of'>,
  state: StatusParts['state'],
): TrainingSurroundings {
  const tasks = (currentAttempt(job)?.tasks ?? []).filter((task) => task.state !== 'ended');
  const noted = tasks.map(({ nodeRank }) => ({
    nodeRank,
    note: taskStatus.of({ jobId: job.id, attempt: job.lastAttempt, nodeRank }),
  }));
  return {
    hangs: noted.flatMap(({ nodeRank, note }) => (note.hang === null ? [] : [{ nodeRank, sign: note.hang }])),
    signs: noted.flatMap(({ nodeRank, note }) => note.signs.map((sign) => ({ nodeRank, sign }))),
    drains: [...new Set(tasks.map(({ node }) => node))].flatMap((node) => {
      const drain = state.nodes.get(node)?.drain ?? null;
      return drain === null ? [] : [{ node, drain }];
    }),
  };
}
