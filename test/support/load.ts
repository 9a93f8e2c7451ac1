/**
 * A load of many short jobs and some long ones, submitted by clients that never give up: a call that fails because the
 * coordinator is away is sent again with the same request id until it is answered.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import { expect } from 'vitest';
import type { Chance } from './chance.ts';
import type { Cluster, Spec } from './cluster.ts';
import { contradictions, parseHistory, type Run, withSignsOfLife } from './history.ts';
import { patienceMs } from './patience.ts';
import { tempDir, waitFor } from './services.ts';

const clients = 4;
const longJobs = 4;
/** Between two submits of one client: what the smallest machines keep up with. */
const pauseMs = { min: 50, max: 600 };

/** What a client got as an answer. */
interface Acknowledged {
  readonly requestId: string;
  readonly spec: Spec;
  readonly jobIds: readonly string[];
}

export class Load {
  readonly acknowledged: Acknowledged[] = [];
  private readonly cluster: Cluster;
  private readonly chance: Chance;
  private readonly historyPath: string;
  private readonly gatePath: string;
  private readonly ending = new AbortController();
  private readonly working: Promise<void>[] = [];
  private longJobIds: readonly string[] = [];
  private longPids: readonly string[] = [];
  private requests = 0;

  constructor(cluster: Cluster, chance: Chance) {
    this.cluster = cluster;
    this.chance = chance;
    const folder = tempDir('load').path;
    this.historyPath = join(folder, 'history');
    this.gatePath = join(folder, 'gate');
    appendFileSync(this.historyPath, '');
  }

  /** Starts the long jobs, waits until they run, and begins to submit short ones. */
  async start(): Promise<void> {
    const wait = `while [ ! -e ${this.gatePath} ]; do sleep 0.2; done`;
    const long = await Promise.all(
      Array.from({ length: longJobs }, () =>
        this.submit({
          name: 'long',
          command: withSignsOfLife(this.historyPath, wait),
          resources: { gpus: 1 },
        }),
      ),
    );
    this.longJobIds = long.flatMap(({ jobIds }) => jobIds);
    await waitFor('the long jobs run', () => this.runsOfLongJobs().length, {
      until: (count) => count === longJobs,
    });
    this.longPids = this.runsOfLongJobs();
    for (let client = 0; client < clients; client += 1) this.working.push(this.keepSubmitting());
  }

  /** Waits until so many short jobs have been submitted in all. */
  async untilSubmitted(count: number): Promise<void> {
    await waitFor(`${count} jobs submitted`, () => this.acknowledged.length - longJobs, {
      until: (submitted) => submitted >= count,
      timeoutMs: 3 * patienceMs,
    });
  }

  /** Stops submitting; every submit has been acknowledged by then. */
  async stop(): Promise<void> {
    this.ending.abort();
    await Promise.all(this.working);
  }

  /** Waits until every short job has ended. */
  async settle(): Promise<readonly JobView[]> {
    const ids = this.acknowledged
      .flatMap(({ jobIds }) => jobIds)
      .filter((id) => !this.longJobIds.includes(id));
    // A job whose nodes were killed while they prepared it needs several attempts, each of which waits for agents to start.
    for (const id of ids) await this.cluster.untilEnded(id, { timeoutMs: 4 * patienceMs });
    return Promise.all(ids.map((id) => this.cluster.api.getJob(id)));
  }

  /**
   * The long jobs have run undisturbed all the time; lets them end.
   * @param end as Muster can know it
   */
  async expectLongJobsUntouched(end: Partial<JobView> = { state: 'succeeded' }): Promise<void> {
    for (const id of this.longJobIds) {
      const job = await this.cluster.api.getJob(id);
      const seen = `${id}: ${JSON.stringify({ cause: job.cause, attempts: job.attempts })}`;
      expect(job, seen).toMatchObject({ state: 'running', attempts: [{ number: 1 }] });
    }
    expect(this.runsOfLongJobs()).toEqual(this.longPids);
    const alive = this.longJobIds.flatMap((id) => this.cluster.processesOf(id)).map(String);
    for (const run of this.longPids) expect(alive).toContain(run.split(' ')[1]);
    writeFileSync(this.gatePath, '');
    for (const id of this.longJobIds) {
      expect(await this.cluster.untilEnded(id)).toMatchObject({ ...end, attempts: [{ number: 1 }] });
    }
  }

  /** Every request has its jobs, no job is anybody else's, and none came out of nothing. */
  async expectJobsAreRequests(): Promise<void> {
    const ids = this.acknowledged.flatMap(({ jobIds }) => jobIds);
    expect(new Set(ids).size).toBe(ids.length);
    const stored: string[] = [];
    for (let beforeSubmitSeq: number | undefined; ; ) {
      const page = await this.cluster.api.listJobs({
        limit: 1000,
        ...(beforeSubmitSeq === undefined ? {} : { beforeSubmitSeq }),
      });
      stored.push(...page.jobs.map(({ id }) => id));
      if (!page.more) break;
      beforeSubmitSeq = page.jobs.at(-1)?.submitSeq;
    }
    expect(stored.toSorted()).toEqual(ids.toSorted());
    for (const { requestId, spec, jobIds } of this.acknowledged.slice(0, 50)) {
      const again = await this.cluster.api.submit({
        specJson: JSON.stringify(spec),
        requestId,
        ...arrayOf(jobIds),
      });
      expect(again).toMatchObject({ jobIds, repeatedRequest: true });
    }
  }

  /** What tasks wrote down agrees with what Muster says of them. */
  async expectHistoryAgrees(): Promise<void> {
    const jobs = await Promise.all(
      this.acknowledged.flatMap(({ jobIds }) => jobIds).map((id) => this.cluster.api.getJob(id)),
    );
    expect(contradictions(this.history(), jobs)).toEqual([]);
  }

  /** The end of a short job, as its spec foresees it. */
  specOf(jobId: string): Spec {
    const found = this.acknowledged.find(({ jobIds }) => jobIds.includes(jobId));
    if (found === undefined) throw new Error(`${jobId} was never acknowledged`);
    return found.spec;
  }

  private history(): readonly Run[] {
    return parseHistory(readFileSync(this.historyPath, 'utf8'));
  }

  /** `job pid` of each. */
  private runsOfLongJobs(): readonly string[] {
    return this.history()
      .filter(({ jobId }) => this.longJobIds.includes(jobId))
      .map(({ jobId, pid }) => `${jobId} ${pid}`);
  }

  private async keepSubmitting(): Promise<void> {
    while (!this.ending.signal.aborted) {
      await this.submit(this.shortJob(), this.chance.pick([undefined, undefined, undefined, 3]));
      await delay(this.chance.integer(pauseMs.min, pauseMs.max));
    }
  }

  /** Ends with code 0, or with another that is its label; prints its label, so that a lost or doubled line shows. */
  private shortJob(): Spec {
    const { chance } = this;
    const code = chance.pick([0, 0, 1, 42]);
    const label = `${chance.integer(0, 999_999)}`;
    const work = `echo first ${label}; sleep 0.${chance.integer(0, 4)}; echo last ${label} >&2; exit ${code}`;
    return {
      name: 'short',
      command: withSignsOfLife(this.historyPath, work),
      labels: { code, label },
      resources: { nodes: chance.pick([1, 1, 1, 2]), cpus: 0.1 },
      stop_grace: '1s',
      retry: {
        max_attempts: chance.pick([1, 1, 2]),
        backoff: { initial: '50ms', max: '200ms' },
        on: ['exit_code'],
      },
    };
  }

  private async submit(spec: Spec, arraySize?: number): Promise<Acknowledged> {
    this.requests += 1;
    const requestId = `request-${this.requests}`;
    const request = {
      specJson: JSON.stringify(spec),
      requestId,
      ...(arraySize === undefined ? {} : { arraySize }),
    };
    for (;;) {
      try {
        const { jobIds } = await this.cluster.api.submit(request);
        const acknowledged = { requestId, spec, jobIds };
        this.acknowledged.push(acknowledged);
        return acknowledged;
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : null;
        if (code !== 'unavailable' && code !== 'deadline_exceeded') throw error;
        await delay(20);
      }
    }
  }
}

/** The array size a request had, from how many jobs it made. */
function arrayOf(jobIds: readonly string[]): { readonly arraySize?: number } {
  return jobIds.length > 1 ? { arraySize: jobIds.length } : {};
}
