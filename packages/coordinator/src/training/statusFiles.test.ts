import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, TestClock } from '../coordinatorFixture.ts';
import type { Job } from '../model.ts';
import { aCaller, aJob, aReport, jobIdOf, queuedState, someMs } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import type { JobRecord } from '../store/store.ts';
import { runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';
import { StatusFiles, statusFileName } from './statusFiles.ts';
import { someProgress } from './trainingFixture.ts';

let directory: string;
let clock: TestClock;
let jobs: Map<JobId, Job>;
let stored: Map<JobId, JobRecord>;
let warnings: unknown[];
let files: StatusFiles;
let page: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-status-'));
  clock = new TestClock();
  jobs = new Map();
  stored = new Map();
  warnings = [];
  page = 'first';
  const log: Logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  files = new StatusFiles({
    state: { jobs },
    store: { readJob: async (id) => stored.get(id) ?? null },
    directoryOf: (jobId) => join(directory, jobId),
    statusOf: ({ job }) => `${page} ${job.state.kind}`,
    monotonicMs: () => clock.monotonicMs(),
    log,
  });
});
afterEach(async () => {
  await files.close();
  rmSync(directory, { recursive: true });
});

const pathOf = (jobId: JobId) => join(directory, jobId, statusFileName);
const read = (jobId = runningJobId) => readFileSync(pathOf(jobId), 'utf8');

/** A commit with this job, and a pass after it. */
async function become(job: Job): Promise<void> {
  if (job.state.kind === 'succeeded') jobs.delete(job.id);
  else jobs.set(job.id, job);
  stored.set(job.id, { job, attempts: [] });
  files.committed({ jobs: [job] });
  await files.run();
}

const ended: Job = { ...runningJob, state: { kind: 'succeeded', endedAtMs: someMs } };

test('is written at every change, refreshed every ten seconds while it runs, and left as it was at the end', async () => {
  await become(runningJob);
  expect(read()).toBe('first running');
  expect(statSync(pathOf(runningJobId)).mode & 0o777).toBe(0o600);
  page = 'second';
  clock.nowMs += 9_999;
  await files.run();
  expect(read()).toBe('first running');
  clock.nowMs += 1;
  await files.run();
  expect(read()).toBe('second running');
  page = 'third';
  await become(ended);
  expect(read()).toBe('third succeeded');
  page = 'fourth';
  clock.nowMs += 60_000;
  await files.run();
  expect(read()).toBe('third succeeded');
  expect(readdirSync(join(directory, runningJobId))).toEqual([statusFileName]);
});

test('a job that has never begun has none, and one that waits again is not refreshed', async () => {
  const fresh = aJob(5, { state: queuedState() });
  await become(fresh);
  expect(existsSync(join(directory, fresh.id))).toBe(false);
  await become({ ...runningJob, state: queuedState() });
  page = 'second';
  clock.nowMs += 60_000;
  await files.run();
  expect(read()).toBe('first queued');
});

test('jobs that run when the coordinator begins get theirs', async () => {
  jobs.set(runningJobId, runningJob);
  stored.set(runningJobId, { job: runningJob, attempts: [] });
  await files.run();
  expect(read()).toBe('first running');
});

test('of a thousand changes at once, one pass writes a part, and the next ones the rest', async () => {
  const many = Array.from({ length: 120 }, (_, index): Job => ({ ...ended, id: jobIdOf(index + 10) }));
  for (const job of many) stored.set(job.id, { job, attempts: [] });
  files.committed({ jobs: many });
  const written = () => many.filter(({ id }) => existsSync(pathOf(id))).length;
  const counts: number[] = [];
  for (let pass = 0; pass < 3; pass += 1) {
    await files.run();
    counts.push(written());
  }
  expect(counts).toEqual([50, 100, 120]);
});

test('a place that cannot be written hinders nothing, is reported once, and is written when it can be', async () => {
  const blocked = join(directory, runningJobId);
  writeFileSync(blocked, 'not a directory');
  await become(runningJob);
  await become(runningJob);
  expect(warnings).toHaveLength(1);
  rmSync(blocked);
  await become(runningJob);
  expect(read()).toBe('first running');
});

test('what lies where it would be written is neither followed nor believed', async () => {
  const folder = join(directory, runningJobId);
  const elsewhere = join(directory, 'elsewhere');
  mkdirSync(folder);
  writeFileSync(elsewhere, 'precious');
  chmodSync(elsewhere, 0o644);
  symlinkSync(elsewhere, `${pathOf(runningJobId)}.tmp`);
  symlinkSync(elsewhere, pathOf(runningJobId));
  await become(runningJob);
  expect(readFileSync(elsewhere, 'utf8')).toBe('precious');
  expect(read()).toBe('first running');
  expect(warnings).toEqual([]);
});

test('after its end nothing is written any more', async () => {
  await files.close();
  await become(runningJob);
  expect(existsSync(pathOf(runningJobId))).toBe(false);
});

test('a coordinator keeps it beside the output, with what agents say, and answers the same', async () => {
  const memory = new Memory('test');
  storeRunningJob(memory);
  const coordinator = await startTestCoordinator({ memory });
  try {
    const { api, loop, logs, taskStatus, reconcilers } = coordinator;
    const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
    await logs.append(task, 0, Buffer.from('step 1\n'));
    const hang = { quietForMs: 600_000, usualMs: 1_000, gpus: 'idle', rank: 2 } as const;
    taskStatus.record(aReport(task, { training: someProgress(), hang }));
    await loop.run(aCaller, (draft) => draft.putJob({ ...runningJob, preemptions: 1 }));
    await reconcilers['statusFiles']?.();
    const folder = logs.directoryOf(runningJobId);
    expect(readdirSync(folder).sort()).toEqual(['1.0.log', statusFileName]);
    const markdown = readFileSync(join(folder, statusFileName), 'utf8');
    for (const words of ['**running**', 'Step: 500 of 1000', 'Rank 2 hangs'])
      expect(markdown).toContain(words);
    expect(await api.getTrainingStatus(runningJobId.slice(0, 8))).toBe(markdown);
    await expect(api.getTrainingStatus('job_zzzzzzzzzzzz')).rejects.toMatchObject({ code: 'not_found' });
  } finally {
    await coordinator.close();
  }
});
