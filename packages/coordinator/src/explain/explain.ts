/** Why is it waiting, why did it end, what now: sentences from the same data that the decisions were made on. */
import { causeFacts } from '@muster/common/causeFacts';
import {
  adviceOn,
  causeInShort,
  didNotStart,
  evidenceShownMax,
  type Surroundings,
  shortened,
} from '@muster/common/causeText';
import { phaseInShort, phaseLines } from '@muster/common/phaseText';
import { scaleTexts } from '@muster/common/scales';
import { resumeAdvice, resumeText, signLines, signSummary } from '@muster/common/signText';
import { isDivergence, isResumeSign } from '@muster/common/training';
import type { AttemptView, Cause, JobView, Resume, TaskView } from '@muster/common/views';
import { describeSilence, type SilentNode, silenceInShort, silenceRemedies } from './silence.ts';

export interface Explanation {
  readonly summary: string;
  readonly details: readonly string[];
  readonly nextSteps: readonly string[];
}

/**
 * @param ahead queued jobs that come before it
 * @param silentNodes nodes of its current attempt that do not answer
 * @param paused why nothing is rescheduled at the moment; null: it is
 * @param resume what its next attempt would resume from, if it were placed where that checkpoint is; null: it would start from
 *   scratch; default: the explanation does not mention it
 */
export function explain(
  job: JobView,
  ahead: number,
  silentNodes: readonly SilentNode[],
  paused: string | null = null,
  resume?: Resume | null,
): Explanation {
  const silent = silentNodes.map((each) => describeSilence(each, paused !== null));
  if (paused !== null && silent.length > 0) silent.push(`nothing is rescheduled now: ${paused}`);
  const remedies = silenceRemedies(silentNodes);
  const history = [...signsOf(job), ...endsOf(job.attempts)];
  const signs = signSummary(job);
  const noted = signs.length === 0 ? '' : `; ${signs.join(', ')}`;
  const silence = silentNodes.length === 0 ? '' : `; ${silenceInShort(silentNodes)}`;
  const work = [...phasesOf(job), ...preemptionsOf(job), ...checkpointsOf(job)];
  switch (job.state) {
    case 'queued': {
      const reason = job.pending;
      return {
        summary: `${job.id} is ${waitingText(reason?.message ?? 'the scheduler has not looked at it yet')}`,
        details: [
          `reason: ${reason?.kind ?? 'scheduling'}`,
          placeInQueue(ahead),
          ...awaitedEvaluations(job).map(
            ({ name, evaluation }) =>
              `the criterion of its phase needs the evaluation of ${name}: ${evaluation?.jobId ?? 'not submitted yet'}`,
          ),
          ...excludedNodeTexts(job),
          ...nextAttemptOf(job, resume),
          ...work,
          ...history,
        ],
        nextSteps: waitingSteps(job),
      };
    }
    case 'starting':
    case 'running': {
      const attempt = job.attempts.at(-1);
      const where = attempt?.tasks.map(describeTask) ?? [];
      const output = `follow its output: muster logs -f ${job.id}`;
      const repairs = [...remedies, ...signAdvice(job), ...scaleTexts(job).hints];
      return {
        summary: `${job.id} is ${job.state}, attempt ${attempt?.number ?? 1}${silence}${noted}`,
        details: [
          ...where,
          ...silent,
          ...sizeOf(job, attempt),
          ...beginningOf(attempt),
          ...scaleTexts(job).lines,
          ...work,
          ...history,
        ],
        nextSteps: repairs.length === 0 ? [`nothing needs to be done; ${output}`] : [...repairs, output],
      };
    }
    case 'stopping':
      return {
        summary: `${job.id} is stopping: ${describeCause(job.cause)}${silence}`,
        details: ['its tasks have stop_grace to save and exit', ...silent, ...work, ...history],
        nextSteps: remedies.length === 0 ? ['nothing needs to be done'] : remedies,
      };
    case 'succeeded':
      return {
        summary: `${job.id} succeeded${afterAttempts(job)}${noted}`,
        details: [...phasesOf(job), ...history],
        nextSteps: [...signAdvice(job), `its output: muster logs ${job.id}`],
      };
    case 'failed':
    case 'cancelled':
      return {
        summary: `${job.id} ${job.state === 'failed' ? `failed${afterAttempts(job)}` : 'was cancelled'}: ${describeCause(job.cause)}`,
        details: [`cause: ${causeAndBlame(job.cause)}`, ...evidenceOfEnd(job), ...work, ...history],
        nextSteps: [
          ...(job.cause === null ? [] : [adviceOn(job.cause, surroundingsOf(job))]),
          ...hintsAfter(job),
          ...lastOutput(job),
          `run it again: muster requeue ${job.id}`,
        ],
      };
    default: {
      const never: never = job.state;
      return never;
    }
  }
}

/** Of a phase whose criterion depends on what is measured of its last checkpoint. */
function awaitedEvaluations({ phases, checkpoints }: JobView): JobView['checkpoints'] {
  if (phases?.phases[phases.index]?.state !== 'judged') return [];
  const open = (state: string | undefined) => state === 'waiting' || state === 'running';
  return checkpoints.filter(({ evaluation }) => open(evaluation?.state)).slice(-1);
}

function phasesOf({ phases }: JobView): readonly string[] {
  return phases === null ? [] : [phaseInShort(phases), ...phaseLines(phases)];
}

/** `rank 1 on node-2: assigned, pulling the image` */
function describeTask({ nodeRank, node, state, doing, frozen }: TaskView): string {
  const frozenText = frozen ? ', frozen until contact with the coordinator is restored' : '';
  return `rank ${nodeRank} on ${node}: ${state}${doing === null ? '' : `, ${doing}`}${frozenText}`;
}

/** Of a job that takes a range of nodes: how many it has. */
function sizeOf({ spec }: JobView, attempt: AttemptView | undefined): readonly string[] {
  const nodes = mappingOf(mappingOf(spec)['resources'])['nodes'];
  const { min, max } = mappingOf(nodes);
  if (attempt === undefined || typeof min !== 'number' || typeof max !== 'number') return [];
  return [`it has ${attempt.tasks.length} nodes of the ${min} to ${max} that it can use`];
}

function mappingOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function surroundingsOf({ spec }: JobView): Surroundings {
  const { image, env } = mappingOf(spec);
  const { VIRTUAL_ENV: venv, CONDA_PREFIX: conda } = mappingOf(env);
  const environment = [venv, conda].find((prefix) => typeof prefix === 'string');
  return { image: typeof image === 'string' ? image : null, environment: environment ?? null };
}

function excludedNodeTexts({ excludedNodes }: JobView): readonly string[] {
  return excludedNodes.map(
    ({ node, cause }) => `${node} is excluded while alternatives exist: ${cause.message}`,
  );
}

function placeInQueue(ahead: number): string {
  if (ahead === 0) return 'first in the queue';
  return ahead === 1 ? '1 queued job is ahead of it' : `${ahead} queued jobs are ahead of it`;
}

/** `in attempt 2: loss NaN at step 80 (last normal step: 70)`. */
function signsOf({ attempts }: JobView): readonly string[] {
  return attempts.flatMap((attempt) => {
    const hung = attempt.hungAtMs !== null && attempt.cause?.kind !== 'hung';
    const lines = [...signLines(attempt), ...(hung ? [attempt.hangs ? 'hangs now' : 'hung for a time'] : [])];
    return lines.map((line) => `in attempt ${attempt.number}: ${line}`);
  });
}

/** Of the newest attempt, while or although nothing has ended it. */
function signAdvice({ attempts }: JobView): readonly string[] {
  const newest = attempts.at(-1);
  const kinds = newest?.signs.map(({ kind }) => kind) ?? [];
  const divergence = kinds.find(isDivergence);
  return [
    ...(divergence === undefined ? [] : [causeFacts[divergence].advice]),
    ...(kinds.includes('resume_ignored') ? [resumeAdvice] : []),
    ...(newest?.hangs === true ? [causeFacts.hung.advice] : []),
  ];
}

/** `waiting for 2 free GPUs …`, `waiting: no node has …`. */
function waitingText(message: string): string {
  return message.startsWith('waiting for ') ? message : `waiting: ${message}`;
}

/** What to do about a failure comes before what one can look at. */
function waitingSteps(job: JobView): readonly string[] {
  const { pending, cause } = job;
  const remedy = pending?.remedy ?? null;
  const isRetry = pending?.kind === 'backoff' || pending?.kind === 'circuit_open';
  const evaluations = awaitedEvaluations(job).flatMap(({ evaluation }) => evaluation?.jobId ?? []);
  if (evaluations.length > 0)
    return evaluations.map((id) => `see why that takes so long: muster explain ${id}`);
  if (!isRetry) return [...(remedy === null ? [] : [remedy]), 'see what is running: muster nodes'];
  // The remedy of a pause is to look at what failed, which is what this answer shows.
  return [
    ...(cause === null ? [] : [adviceOn(cause, surroundingsOf(job))]),
    ...scaleTexts(job).hints,
    ...lastOutput(job),
  ];
}

/** Where nothing ran there is no output to look at. */
function lastOutput({ id, cause }: JobView): readonly string[] {
  return cause !== null && didNotStart(cause) ? [] : [`its last output: muster logs --tail 50 ${id}`];
}

function describeCause(cause: Cause | null): string {
  return cause === null ? 'for an unknown reason' : shortened(cause.message);
}

/** ` after 3 attempts`; nothing of a single one. */
function afterAttempts({ attempts }: JobView): string {
  return attempts.length < 2 ? '' : ` after ${attempts.length} attempts`;
}

function causeAndBlame(cause: Cause | null): string {
  if (cause === null) return 'unknown';
  return cause.blame === 'unknown' ? cause.kind : `${cause.kind} (attributed to: ${cause.blame})`;
}

/** Attempts in a row that ended in the same way, oldest first. */
interface EndGroup {
  readonly first: number;
  readonly last: number;
  /** Of the newest of them. */
  readonly cause: Cause;
}

/** `attempts 1-3: CUDA OOM on rank 1`, with what shows it: equal ends that follow each other are one line. */
function endsOf(attempts: readonly AttemptView[]): readonly string[] {
  const groups: EndGroup[] = [];
  for (const { number, cause } of attempts.toSorted((a, b) => a.number - b.number)) {
    if (cause === null) continue;
    const before = groups.at(-1);
    if (before !== undefined && before.last === number - 1 && isSameEnd(before.cause, cause)) {
      groups[groups.length - 1] = { first: before.first, last: number, cause };
    } else {
      groups.push({ first: number, last: number, cause });
    }
  }
  return groups.flatMap(({ first, last, cause }) => {
    const which = first === last ? `attempt ${first}` : `attempts ${first}-${last}`;
    return [`${which}: ${causeInShort(cause)}`, ...evidenceOf(cause)];
  });
}

function isSameEnd(a: Cause, b: Cause): boolean {
  if (a.kind !== b.kind || a.evidence?.rank !== b.evidence?.rank) return false;
  // Numbers of lines, ports and bytes differ from one time to the next; other jobs and nodes are other ends.
  const withoutNumbers = (cause: Cause) =>
    causeInShort(cause).replace(/\bjob_\w+|\d+/gu, (found) => (found.startsWith('job_') ? found : '0'));
  return a.nodeRank === b.nodeRank && a.node === b.node && withoutNumbers(a) === withoutNumbers(b);
}

/** Of a job whose attempts do not show it: it ended while it waited. */
function evidenceOfEnd({ cause, attempts }: JobView): readonly string[] {
  return attempts.at(-1)?.cause == null ? evidenceOf(cause) : [];
}

/** `line 1042 of rank 3: torch.OutOfMemoryError: …`; only what the line above it does not show. */
function evidenceOf(cause: Cause | null): readonly string[] {
  if (cause?.evidence == null) return [];
  const { line, rank, text } = cause.evidence;
  const where = [...(line === null ? [] : [`line ${line}`]), ...(rank === null ? [] : [`rank ${rank}`])];
  const shown = shortened(text);
  const start = shown.slice(0, evidenceShownMax / 4);
  const isShown = causeInShort(cause).includes(start) || cause.kind === 'exit_code';
  if (isShown) return line === null ? [] : [`  evidence: ${where.join(' of ')}`];
  return [`  evidence${where.length === 0 ? '' : `, ${where.join(' of ')}`}: ${shown}`];
}

function describeCheckpoint({ name, step }: Resume): string {
  return step === null ? name : `${name} (step ${step})`;
}

/** What the running attempt was offered, and whether its output shows that it took that. */
function beginningOf(attempt: AttemptView | undefined): readonly string[] {
  if (attempt === undefined || attempt.resume === null) return [];
  const text = resumeText(attempt) ?? '';
  const isOpen = !attempt.signs.some(({ kind }) => isResumeSign(kind));
  return [isOpen ? `${text}; its output has not confirmed it` : text];
}

function nextAttemptOf(job: JobView, resume: Resume | null | undefined): readonly string[] {
  // Before the first attempt, no line is shown about it.
  if (job.attempts.length === 0) return scaleTexts(job).lines;
  if (resume === undefined) return scaleTexts(job).lines;
  const from = resume === null ? 'starts from scratch' : `is offered ${describeCheckpoint(resume)}`;
  return [`its next attempt ${from}`, ...scaleTexts(job).lines];
}

/** Of a job that has failed of what a scale should have prevented. */
function hintsAfter(job: JobView): readonly string[] {
  const isTreated = job.cause !== null && ['cuda_oom', ...divergences].includes(job.cause.kind);
  return isTreated ? scaleTexts(job).hints : [];
}

const divergences = ['nan_loss', 'loss_divergence', 'loss_scale_exhausted'];

function preemptionsOf({ preemptions, spec }: JobView): readonly string[] {
  if (preemptions === 0) return [];
  const most = mappingOf(mappingOf(spec)['retry'])['max_preemptions'];
  const times = preemptions === 1 ? 'once' : `${preemptions} times`;
  const limit = typeof most === 'number' ? `, of at most ${most} (retry.max_preemptions)` : '';
  return [`preempted ${times}${limit}`];
}

/** The newest that can be used, and what cannot. */
function checkpointsOf({ checkpoints }: JobView): readonly string[] {
  const good = checkpoints.findLast(({ verdict, suspect }) => verdict === 'verified' && !suspect);
  const bad = checkpoints.filter(({ verdict, suspect }) => verdict === 'corrupt' || suspect);
  const where = good === undefined || good.shared ? '' : `, on ${good.node} only`;
  return [
    ...(good === undefined ? [] : [`newest good checkpoint: ${describeCheckpoint(good)}${where}`]),
    ...bad.map((each) =>
      each.verdict === 'corrupt'
        ? `${describeCheckpoint(each)} is corrupt${each.problem === null ? '' : `: ${each.problem}`}`
        : `${describeCheckpoint(each)} is suspect: attempts that were offered it failed in the same way, so it is not used`,
    ),
  ];
}
