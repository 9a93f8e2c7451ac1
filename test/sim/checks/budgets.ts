/**
 * What follows from an end that was bad: retried is only what the job asks for, only as often as it asks for without
 * progress, not too fast, and as often as that.
 */
import { type CauseKind, defaultRetryCauses } from '@muster/common/spec/causes';
import { parseDurationMs } from '@muster/common/spec/duration';
import type { Cause } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import { clockRateError } from '../clock.ts';
import type { Fact } from '../history.ts';
import { isProgress, type JobStories, type JobStory } from './jobStories.ts';
import type { Verdict } from './verdict.ts';

/** Of no program's making, unless the evidence shows that. */
const elsewhere: readonly CauseKind[] = [
  ...(['node_lost', 'gpu_fault', 'gpu_suspect', 'gpu_hw_ecc', 'gpu_hw_nvlink', 'nccl_error'] as const),
  ...(['rendezvous', 'rendezvous_timeout'] as const),
];
/** What keeps tasks from starting: it has a budget of its own. */
const startCauses: readonly CauseKind[] = [...elsewhere, 'image_pull', 'disk_full', 'unknown'];
/** What a slow disk takes to write. */
const slowCommitsMs = 1_700;
/** Then a batch is too small to be halved. */
const oomsMax = 6;

interface Budget {
  failures: number;
  inRow: number;
  ooms: number;
  /** World time. */
  pausedUntilMs: number;
}

export class BudgetCheck {
  private readonly budgets = new Map<string, Budget>();
  private readonly stopped = new Set<string>();
  private readonly verdict: Verdict;
  private readonly stories: JobStories;

  constructor(verdict: Verdict, stories: JobStories) {
    this.verdict = verdict;
    this.stories = stories;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'stopSent') this.stopped.add(fact.jobId);
    if (fact.kind === 'committed') for (const event of fact.events) this.onEvent(event, nowMs);
  }

  private onEvent(event: StoredEvent, nowMs: number): void {
    const { kind, subject, data } = event;
    const story = this.stories.of(subject);
    if (story?.file === undefined) return;
    const none = { failures: 0, inRow: 0, ooms: 0, pausedUntilMs: 0 };
    const budget = this.budgets.get(subject) ?? none;
    this.budgets.set(subject, budget);
    const isPhaseEnd = kind === 'phase.ended' || kind === 'phase.extended';
    if (isProgress(story, event) || isPhaseEnd) Object.assign(budget, { failures: 0, inRow: 0 });
    else if (kind === 'attempt.allocated') {
      const what = () =>
        `${subject} got another trial ${budget.pausedUntilMs - nowMs} ms before its pause is over`;
      this.verdict.require(nowMs >= budget.pausedUntilMs, 'retry', what);
    } else if (kind === 'job.queued') this.onRetried(story, budget, event, nowMs);
    else if (kind === 'job.failed') this.onGivenUp(story, budget, data['cause'] as Cause);
  }

  private onRetried(story: JobStory, budget: Budget, { data }: StoredEvent, nowMs: number): void {
    const cause = data['cause'] as Cause | null;
    if (cause === null || cause.kind === 'preempted' || isOfStart(story, cause)) return;
    const { retry } = story.file ?? {};
    const must = (holds: boolean, what: string) =>
      this.verdict.require(holds, 'retry', () => `${story.id} is tried again after ${cause.kind}, ${what}`);
    must(isAskedFor(story, cause), 'which it did not ask for');
    budget.inRow += 1;
    budget.ooms += cause.kind === 'cuda_oom' ? 1 : 0;
    const isCharged = isChargedFor(story, budget.inRow, cause);
    if (isCharged) budget.failures += 1;
    const most = retry?.max_attempts ?? 1;
    must(!isCharged || budget.failures < most, `its failure ${budget.failures} of ${most}`);
    if (!isOpen(story, budget.inRow)) return;
    const pauseMs = parseDurationMs(retry?.breaker?.pause ?? 0) ?? 0;
    must(Number(data['backoffMs']) >= pauseMs, `its failure ${budget.inRow} in a row, without a pause`);
    // It began before this was committed, by another clock.
    budget.pausedUntilMs = nowMs + pauseMs * (1 - clockRateError) - slowCommitsMs;
  }

  private onGivenUp(story: JobStory, budget: Budget, cause: Cause): void {
    if (this.stopped.has(story.id) || isOfStart(story, cause)) return;
    const { retry } = story.file ?? {};
    if (!isAskedFor(story, cause)) return;
    if (cause.kind === 'cuda_oom' && budget.ooms >= oomsMax) return;
    const most = retry?.max_attempts ?? 1;
    const what = () =>
      `${story.id} was given up after ${cause.kind}, its failure ${budget.failures + 1} of ${most}`;
    const isCharged = isChargedFor(story, budget.inRow + 1, cause);
    this.verdict.require(isCharged && budget.failures + 1 >= most, 'retry', what);
  }
}

/** Before the release or after it, as long as no program of that rank has run. */
function isOfStart({ last }: JobStory, { kind }: Cause): boolean {
  if (last === null || !startCauses.includes(kind)) return false;
  return !last.isReleased || last.startErrors.includes(kind);
}

function isAskedFor({ file }: JobStory, { kind }: Cause): boolean {
  const asked: readonly string[] = file?.retry?.on ?? defaultRetryCauses;
  return asked.includes(kind);
}

/** So many failures in a row open the breaker. */
function isOpen({ file }: JobStory, inRow: number): boolean {
  return inRow >= (file?.retry?.breaker?.failures ?? 3);
}

/** What fails everywhere is not the nodes' doing after all. */
function isChargedFor(story: JobStory, inRow: number, cause: Cause): boolean {
  return !isFree(cause) || (isOpen(story, inRow) && cause.kind !== 'node_lost');
}

function isFree({ kind, blame }: Cause): boolean {
  if (kind === 'node_lost') return true;
  return blame !== 'job' && (elsewhere.includes(kind) || kind === 'cuda_oom');
}
