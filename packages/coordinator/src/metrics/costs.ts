/**
 * What jobs cost: the time for which they hold GPUs, at the price of each. Counted as it passes and not when an attempt ends, so that a
 * training of days has a cost on its first day. Counts begin with this process; on the monotonic clock, so that no change of the time
 * costs anybody anything.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import { currentAttempt, type Job, type Node } from '../model.ts';
import type { GpuPrice } from '../options.ts';
import { priceOfAttempt } from '../prices.ts';

export interface CostParts {
  readonly state: { readonly jobs: ReadonlyMap<JobId, Job>; readonly nodes: ReadonlyMap<NodeName, Node> };
  readonly prices: readonly GpuPrice[];
  readonly monotonicMs: () => number;
}

interface Held {
  readonly attempt: number;
  readonly project: string;
  readonly usdPerHour: number;
  countedMs: number;
}

/** More projects than that are one: labels must not grow without end. */
const projectsMax = 200;
const otherProjects = 'others';
const hourMs = 3_600_000;

export class Costs {
  private readonly parts: CostParts;
  private readonly held = new Map<JobId, Held>();
  private readonly usd = new Map<string, number>();

  constructor(parts: CostParts) {
    this.parts = parts;
    for (const job of parts.state.jobs.values()) this.follow(job);
  }

  /** Called for every commit, with the jobs as they are after it. */
  committed(jobs: readonly Job[]): void {
    for (const job of jobs) this.follow(job);
  }

  /** USD since this process began, by project. Never less than before. */
  byProject(): ReadonlyMap<string, number> {
    for (const held of this.held.values()) this.count(held);
    return this.usd;
  }

  private follow(job: Job): void {
    const attempt = currentAttempt(job);
    const known = this.held.get(job.id);
    if (known !== undefined && known.attempt === attempt?.number) return;
    if (known !== undefined) {
      this.count(known);
      this.held.delete(job.id);
    }
    if (attempt === null) return;
    const { prices, state, monotonicMs } = this.parts;
    const usdPerHour = priceOfAttempt(attempt, state.nodes, prices).usdPerHour;
    if (usdPerHour === 0) return;
    const { project } = job.spec;
    this.held.set(job.id, { attempt: attempt.number, project, usdPerHour, countedMs: monotonicMs() });
  }

  private count(held: Held): void {
    const nowMs = this.parts.monotonicMs();
    const isKnown = this.usd.has(held.project) || this.usd.size < projectsMax;
    const project = isKnown ? held.project : otherProjects;
    const usd = (held.usdPerHour * (nowMs - held.countedMs)) / hourMs;
    this.usd.set(project, (this.usd.get(project) ?? 0) + usd);
    held.countedMs = nowMs;
  }
}
