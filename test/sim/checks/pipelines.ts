/**
 * Runs of pipelines: each try of a step is one job, which starts once all that it waits for has ended and its inputs are there; a step that
 * is cached has none; a stopped run starts only what stands under `finally`; and a run ends once, when each of its steps has.
 */
import { hasPipelineEnded, type PipelineState } from '@muster/common/pipelines';
import type { StoredEvent } from '@muster/coordinator/model';
import type { StoredPipelineStep } from '@muster/coordinator/store/pipelines';
import type { Committed, Fact } from '../history.ts';
import { isTrialName, type PipelineFile, type StepPromise } from '../pipelineFiles.ts';
import type { Verdict } from './verdict.ts';

interface Run {
  readonly file: PipelineFile;
  state: PipelineState;
  /** The newest row of each instance, by step and index. */
  readonly rows: Map<string, StoredPipelineStep>;
  /** Jobs of all tries, by step, index and number. */
  readonly jobs: Map<string, string>;
}

type Row = StoredPipelineStep;

export class PipelineCheck {
  private readonly runs = new Map<string, Run>();
  /** Where each job of a step stands. */
  private readonly places = new Map<string, { readonly run: Run; readonly step: string }>();
  private readonly jobNames = new Map<string, string>();
  private readonly verdict: Verdict;
  private readonly files: ReadonlyMap<string, PipelineFile>;

  /** @param files by the names of the pipelines */
  constructor(verdict: Verdict, files: ReadonlyMap<string, PipelineFile>) {
    this.verdict = verdict;
    this.files = files;
  }

  see(fact: Fact): void {
    if (fact.kind === 'inputMissing')
      this.must(false, () => `${fact.task.jobId} reads ${fact.path}, which is not there`);
    if (fact.kind === 'committed') this.onCommit(fact);
  }

  /** Every run has ended. */
  isAtRest(): boolean {
    return [...this.runs.values()].every(({ state }) => hasPipelineEnded(state));
  }

  /** Somebody has stopped its run, or its time was up. */
  wasStopped(jobId: string): boolean {
    const place = this.places.get(jobId);
    return place !== undefined && (place.run.state.startsWith('stop') || place.step === 'report');
  }

  requireSettled(): void {
    for (const [id, { state, rows }] of this.runs)
      this.must(
        hasPipelineEnded(state),
        () => `${id} is ${state} for ever: ${JSON.stringify([...rows.values()])}`,
      );
  }

  private onCommit({ events, steps }: Committed): void {
    const submitted = events.filter((event) => this.isOfStep(event)).map(({ subject }) => subject);
    for (const event of events) if (event.kind === 'pipeline.created') this.onCreated(event);
    // Judged by what was before: rows of one commit stand beside each other.
    const before = new Map([...this.runs].map(([id, { rows }]) => [id, new Map(rows)]));
    for (const row of steps) this.onRow(row, before.get(row.run) ?? new Map());
    for (const job of submitted)
      this.must(this.places.has(job), () => `${job} was stored without the step that it is of`);
    for (const event of events) this.onEvent(event);
  }

  private isOfStep({ kind, data }: StoredEvent): boolean {
    if (kind !== 'job.submitted' || data['requeuedFrom'] !== undefined) return false;
    const name = String(data['name']);
    if (this.jobNames.size === 0)
      for (const { submissions, name: pipeline } of this.files.values())
        for (const each of submissions) if (!isTrialName(each.name)) this.jobNames.set(each.name, pipeline);
    return this.jobNames.has(name);
  }

  private onCreated({ data }: StoredEvent): void {
    const id = String(data['pipeline']);
    const file = this.files.get(String(data['name']));
    this.must(!this.runs.has(id), () => `${id} is created twice`);
    if (file !== undefined) this.runs.set(id, { file, state: 'running', rows: new Map(), jobs: new Map() });
  }

  private onRow(row: Row, before: ReadonlyMap<string, Row>): void {
    const run = this.runs.get(row.run);
    const promise = run?.file.steps.find(({ name }) => name === row.step);
    if (run === undefined || promise === undefined) return;
    const key = `${row.step}/${row.index}`;
    const what = () => `${row.run} ${key} is ${row.state}, try ${row.tries}`;
    const earlier = before.get(key);
    run.rows.set(key, row);
    this.must(!hasPipelineEnded(run.state), () => `${what()}, after its run has ended`);
    if (row.jobId !== null) this.onJob(run, row, what);
    if (row.state === 'running') {
      if (earlier?.state !== 'running') this.onStart(run, promise, { row, earlier, before }, what);
    } else if (row.state === 'cached') {
      this.must(row.jobId === null, () => `${what()}, with job ${row.jobId}`);
      const source = this.runs.get(row.cachedFrom ?? '')?.rows.get(key);
      this.must(
        source?.state === 'succeeded' && JSON.stringify(source.outputs) === JSON.stringify(row.outputs),
        () => `${what()}, from ${row.cachedFrom}, which has not made its outputs`,
      );
    } else if (row.state === 'succeeded' && promise.name !== 'gather' && promise.needs.length === 0) {
      const wanted = promise.name === 'make' ? 1 : 0;
      this.must(row.outputs.length === wanted, () => `${what()}, with ${row.outputs.length} outputs`);
    }
  }

  /** One try is one job, and one job is one try. */
  private onJob(run: Run, { run: id, step, index, tries, jobId }: Row, what: () => string): void {
    if (jobId === null) return;
    const key = `${id}/${step}/${index}/${tries}`;
    const known = run.jobs.get(key);
    this.must(known === undefined || known === jobId, () => `${what()}, as ${jobId} and as ${known}`);
    const others = [...run.jobs].filter(([other, job]) => job === jobId && other !== key);
    this.must(others.length === 0, () => `${what()}, as ${jobId}, which is of ${others[0]?.[0]}`);
    run.jobs.set(key, jobId);
    this.places.set(jobId, { run, step });
  }

  private onStart(
    { file, state, rows }: Run,
    promise: StepPromise,
    { row, earlier, before }: { row: Row; earlier: Row | undefined; before: ReadonlyMap<string, Row> },
    what: () => string,
  ): void {
    const { group, needs, retries, holds } = promise;
    this.must(row.tries === (earlier?.tries ?? 0) + 1, () => `${what()}, after ${JSON.stringify(earlier)}`);
    this.must(row.tries <= retries + 1, () => `${what()}, and it may be retried ${retries} times`);
    this.must(
      earlier === undefined || earlier.state === 'failed',
      () => `${what()}, and was ${earlier?.state}`,
    );
    this.must(holds !== false, () => `${what()}, and its condition does not hold`);
    this.must(group === 'finally' || state !== 'stopping', () => `${what()}, after its run was stopped`);
    const ended = (name: string, good: boolean) => {
      const { count = 0 } = file.steps.find((each) => each.name === name) ?? {};
      return Array.from({ length: count }, (_, index) => before.get(`${name}/${index}`)).every((each) =>
        good
          ? each !== undefined && ['succeeded', 'cached', 'skipped'].includes(each.state)
          : each !== undefined && each.state !== 'running',
      );
    };
    for (const name of needs)
      this.must(ended(name, true), () => `${what()}, and ${name} is ${stateOf(rows, name)}`);
    if (group === 'steps') return;
    for (const { name } of file.steps.filter((each) => isBefore(each.group, group)))
      this.must(ended(name, false), () => `${what()}, and ${name} is ${stateOf(rows, name)}`);
  }

  private onEvent({ kind, data }: StoredEvent): void {
    const id = String(data['pipeline']);
    const run = this.runs.get(id);
    if (run === undefined) return;
    if (kind === 'pipeline.stopped') run.state = 'stopping';
    if (kind !== 'pipeline.ended') return;
    const state = data['state'] as PipelineState;
    this.must(!hasPipelineEnded(run.state), () => `${id} ends twice`);
    this.must(
      (run.state === 'stopping') === (state === 'stopped'),
      () => `${id} was ${run.state}, and is ${state}`,
    );
    run.state = state;
    const rows = run.file.steps.flatMap(({ name, count }) =>
      Array.from({ length: count }, (_, index) => run.rows.get(`${name}/${index}`)),
    );
    this.must(
      rows.every((row) => row !== undefined && row.state !== 'running'),
      () =>
        `${id} has ended as ${state}, and its steps are ${rows.map((row) => row?.state ?? 'waiting').join(', ')}`,
    );
    const tidy = run.rows.get('tidy/0')?.state ?? 'waiting';
    this.must(
      ['succeeded', 'failed', 'stopped'].includes(tidy),
      () => `${id} has ended, and its last step is ${tidy}`,
    );
    const hasFailed = rows.some((row) => row?.state === 'failed' || row?.state === 'stopped');
    if (state !== 'stopped')
      this.must(
        hasFailed === (state === 'failed'),
        () => `${id} has ended as ${state}: ${JSON.stringify(rows)}`,
      );
  }

  private must(holds: boolean, what: () => string): void {
    this.verdict.require(holds, 'pipeline', what);
  }
}

function isBefore(group: StepPromise['group'], other: StepPromise['group']): boolean {
  const order = ['steps', 'on_failure', 'finally'];
  return order.indexOf(group) < order.indexOf(other);
}

function stateOf(rows: ReadonlyMap<string, Row>, name: string): string {
  return (
    [...rows.values()].find(({ step, state }) => step === name && state !== 'succeeded')?.state ?? 'waiting'
  );
}
