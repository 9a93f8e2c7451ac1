/** What clients were told: G1 (an answered submit is kept, an id is one job's for ever) and G5 (a watch misses nothing). */
import type { Fact, SubmitAnswered } from '../history.ts';
import type { LogCheck } from './log.ts';
import type { Verdict } from './verdict.ts';

export class ClientCheck {
  private readonly answers = new Map<string, string>();
  /** By job id. */
  private readonly requests = new Map<string, string>();
  private readonly committed = new Set<string>();
  watchedSeq = 0;
  private readonly log: LogCheck;
  private readonly verdict: Verdict;

  constructor(verdict: Verdict, log: LogCheck) {
    this.verdict = verdict;
    this.log = log;
  }

  see(fact: Fact): void {
    if (fact.kind === 'submitAnswered') this.onSubmitAnswered(fact);
    else if (fact.kind === 'watched') this.onWatched(fact.event);
    else if (fact.kind === 'committed') {
      for (const { kind, subject } of fact.events) if (kind === 'job.submitted') this.committed.add(subject);
    }
  }

  private onSubmitAnswered({ requestId, jobIds }: SubmitAnswered): void {
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
        () => `${requestId} was told ${id}, which was not committed`,
      );
      this.requests.set(id, requestId);
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
