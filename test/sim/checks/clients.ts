/**
 * Checks G1, G5 and G6 of docs/guarantees.md on the answers that clients got. G1: a submit that was answered is kept, an id
 * belongs to one job for ever, and a requeue is done once. G5: a watch misses nothing. G6: a job that a client has seen
 * ended stays ended, and attempt numbers never decrease.
 */
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { StoredEvent } from '@muster/coordinator/model';
import type { Fact, JobsListed, SubmitAnswered } from '../history.ts';
import type { LogCheck } from './log.ts';
import type { Verdict } from './verdict.ts';

export class ClientCheck {
  private readonly answers = new Map<string, string>();
  /** By job id. */
  private readonly requests = new Map<string, string>();
  private readonly committed = new Set<string>();
  private readonly answeredAtMs = new Map<string, number>();
  private readonly requeues = new Tally();
  /** Jobs as they were listed last. */
  private readonly seen = new Map<string, JobsListed['jobs'][number]>();
  private seenAtMs = 0;
  watchedSeq = 0;
  private readonly log: LogCheck;
  private readonly verdict: Verdict;

  constructor(verdict: Verdict, log: LogCheck) {
    this.verdict = verdict;
    this.log = log;
  }

  see(fact: Fact, nowMs: number): void {
    if (fact.kind === 'submitAnswered') this.onSubmitAnswered(fact, nowMs);
    else if (fact.kind === 'listed') this.onListed(fact, nowMs);
    else if (fact.kind === 'watched') this.onWatched(fact.event);
    else if (fact.kind === 'requeueWanted') this.requeues.add(fact.jobId);
    else if (fact.kind === 'committed') {
      for (const event of fact.events) {
        if (event.kind === 'job.submitted') this.committed.add(event.subject);
        this.onRequeued(event);
      }
    }
  }

  /** Of a running job it shows as an end of its attempt, of an ended one as a new job. */
  private onRequeued({ kind, subject, data }: StoredEvent): void {
    const { cause, requeuedFrom } = data as { cause?: { message?: string }; requeuedFrom?: string };
    const isStop = kind === 'job.stopping' && cause?.message?.startsWith('requeued by a user') === true;
    const job =
      isStop || kind === 'job.requeued' ? subject : kind === 'job.submitted' ? requeuedFrom : undefined;
    if (job === undefined) return;
    const isWanted = this.requeues.take(job);
    this.verdict.require(isWanted, 'G1', () => `${job} was requeued more often than anybody asked for`);
  }

  private onSubmitAnswered({ requestId, jobIds }: SubmitAnswered, nowMs: number): void {
    const answer = jobIds.join();
    const before = this.answers.get(requestId) ?? answer;
    this.verdict.require(
      before === answer,
      'G1',
      () => `${requestId} was answered ${before} and then ${answer}`,
    );
    this.answers.set(requestId, answer);
    for (const id of jobIds) {
      const owner = this.requests.get(id) ?? requestId;
      this.verdict.require(
        owner === requestId,
        'G1',
        () => `${requestId} got ${id}, which is a job of ${owner}`,
      );
      this.verdict.require(
        this.committed.has(id),
        'G1',
        () => `${requestId} received ${id}, which was not committed`,
      );
      this.requests.set(id, requestId);
      if (!this.answeredAtMs.has(id)) this.answeredAtMs.set(id, nowMs);
    }
  }

  private onListed({ askedAtMs, jobs }: JobsListed, nowMs: number): void {
    const listed = new Set(jobs.map(({ id }) => id));
    for (const [id, answeredAtMs] of this.answeredAtMs) {
      const isMissing = answeredAtMs < askedAtMs && !listed.has(id);
      this.verdict.require(
        !isMissing,
        'G1',
        () => `${id} was answered to a client, and a list does not have it`,
      );
    }
    // Answers may overtake each other; what was asked after an answer came cannot be older than that.
    if (askedAtMs < this.seenAtMs) return;
    this.seenAtMs = nowMs;
    for (const job of jobs) {
      const before = this.seen.get(job.id);
      this.seen.set(job.id, job);
      if (before === undefined) continue;
      const hasChanged = isTerminal(before.state as JobStateKind) && job.state !== before.state;
      this.verdict.require(!hasChanged, 'G6', () => `${job.id} was ${before.state} and is ${job.state}`);
      const fell = job.attempt < before.attempt;
      this.verdict.require(
        !fell,
        'G6',
        () => `${job.id} was at attempt ${before.attempt} and is at ${job.attempt}`,
      );
    }
  }

  private onWatched({ seq, id, text }: Extract<Fact, { kind: 'watched' }>['event']): void {
    this.verdict.require(
      seq === this.watchedSeq + 1,
      'G5',
      () => `a watch got ${seq} after ${this.watchedSeq}`,
    );
    this.watchedSeq = seq;
    const stored = this.log.events[seq - 1];
    const { data } = JSON.parse(text) as { data: unknown };
    const isSame = stored?.id === id && JSON.stringify(stored.data) === JSON.stringify(data);
    this.verdict.require(
      isSame,
      'G5',
      () => `a watch got ${text} as event ${seq}, which is ${JSON.stringify(stored)}`,
    );
  }
}

/** How often each thing may still be taken. */
class Tally {
  private readonly counts = new Map<string, number>();

  add(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** @returns false when there was none left */
  take(what: string): boolean {
    const count = this.counts.get(what) ?? 0;
    this.counts.set(what, count - 1);
    return count > 0;
  }
}
