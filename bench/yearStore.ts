/**
 * Makes a store as large as years of work leave it: ended jobs with one attempt and ten events each. The rows are written by plain
 * SQL without waiting for the disk, and witness and page sums are made of the result, so that a coordinator takes it.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { JobId } from '@muster/common/ids';
import type { Cause } from '@muster/common/views';
import type { JobState } from '@muster/coordinator/model';
import { aJob, anAttempt, anExit, aSpec, aTask } from '@muster/coordinator/modelFixture';
import { attemptToRow, jobToRow } from '@muster/coordinator/store/rows';
import { storePaths } from '@muster/coordinator/store/sqlite/inspection';
import { writeAllPageSums } from '@muster/coordinator/store/sqlite/pageSums';
import { openSqliteStore } from '@muster/coordinator/store/sqlite/sqliteStore';
import { createWitness, firstWitness } from '@muster/coordinator/store/sqlite/witness';
import { insertJob, upsertAttempt } from '@muster/coordinator/store/statements/jobs';
import { insertLabel } from '@muster/coordinator/store/statements/lists';

/** Half of all jobs have this name. */
export const commonName = 'sweep';
/** One job has this name. */
export const rareName = 'the-only-one';
/** Half of all jobs are of this project and have this label; one job has the others. */
export const commonLabel = 'team=vision';
export const commonProject = 'vision';
export const rareLabel = 'team=nobody-else';
export const rareProject = 'nobody-else';
export const eventsPerJob = 10;
const spanMs = 20 * 86_400_000;

const cause: Cause = {
  kind: 'python_exception',
  message: 'rank 0 on node-1: RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 768x1024)',
  nodeRank: 0,
  node: 'node-1',
  evidence: { line: 4711, text: 'RuntimeError: mat1 and mat2 shapes cannot be multiplied', rank: 0 },
  blame: 'job',
};
const eventKinds = [
  'job.submitted',
  'job.placed',
  'job.running',
  ...Array.from({ length: eventsPerJob - 4 }, () => 'job.checkpoint_saved'),
  'job.succeeded',
];
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** Scattered over the key space as random ids are, and the same in each run. */
export function idOfJob(number: number): JobId {
  const high = Math.imul(number, 0x9e3779b1) & 0x3fffffff;
  return `job_${lettersOf(high)}${lettersOf(number)}` as JobId;
}

function lettersOf(number: number): string {
  return Array.from({ length: 6 }, (_, place) => alphabet.charAt((number >>> (5 * place)) & 31)).join('');
}

function nameOf(number: number): string {
  if (number === 1) return rareName;
  return number % 2 === 0 ? commonName : `train-${number % 999}`;
}

function projectOf(number: number): string {
  if (number === 1) return rareProject;
  return number % 2 === 0 ? commonProject : `project-${number % 99}`;
}

/** @param nowMs the newest job ended then, the oldest 20 days earlier */
export async function makeYearStore(dataDir: string, jobs: number, nowMs: number): Promise<void> {
  const made = openSqliteStore(dataDir, () => 'benchyear');
  await made.close();
  const paths = storePaths(dataDir);
  const database = new DatabaseSync(paths.database);
  try {
    // The mode is changed out of WAL first: SQLite does not leave that for `off` by itself.
    database.exec('pragma journal_mode = delete; pragma journal_mode = off; pragma synchronous = off');
    database.exec('pragma cache_size = -3000000');
    database.exec('begin');
    insertJobs(database, jobs, nowMs);
    insertEvents(database);
    database.exec('commit; pragma journal_mode = wal');
  } finally {
    database.close();
  }
  seal(dataDir, jobs);
}

function insertJobs(database: DatabaseSync, jobs: number, nowMs: number): void {
  const newJob = database.prepare(insertJob.sql);
  const newLabel = database.prepare(insertLabel.sql);
  const newAttempt = database.prepare(upsertAttempt.sql);
  for (let number = 1; number <= jobs; number += 1) {
    const id = idOfJob(number);
    const endedAtMs = Math.round(nowMs - ((jobs - number) / jobs) * spanMs);
    const failed = number % 10 === 0;
    const state: JobState = failed ? { kind: 'failed', endedAtMs, cause } : { kind: 'succeeded', endedAtMs };
    const submittedAtMs = endedAtMs - 3_600_000;
    const project = projectOf(number);
    const labels = { team: project };
    const spec = aSpec({ name: nameOf(number), project, labels, resources: { nodes: 1, gpus: 1 } });
    const job = aJob(number, { id, spec, state, submittedAtMs, lastAttempt: 1 });
    newJob.run(insertJob.parameters(jobToRow(job)));
    newLabel.run({ name: 'team', value: project, submit_seq: number, job_id: id });
    const task = aTask(0, { state: 'ended', gpuUuids: [`GPU-${number % 8}`], exit: anExit({}) });
    const attempt = anAttempt(1, { state: 'ended', endedAtMs, cause: failed ? cause : null, tasks: [task] });
    newAttempt.run(upsertAttempt.parameters(attemptToRow(id, attempt)));
  }
}

function insertEvents(database: DatabaseSync): void {
  database.exec(
    'create temp table kinds (number integer primary key, kind text not null, data text not null)',
  );
  const kind = database.prepare('insert into kinds values (?, ?, ?)');
  const data = { attempt: 1, name: 'checkpoint-1200', step: 1_200, node: 'node-1', bytes: 1_048_576 };
  eventKinds.forEach((each, index) => kind.run(index + 1, each, JSON.stringify(data)));
  database.exec(`
    insert into events (seq, id, subject, subject_seq, kind, time_ms, data, caller, peer)
    select (submit_seq - 1) * ${eventsPerJob} + number, 'benchyear-' || ((submit_seq - 1) * ${eventsPerJob} + number),
      jobs.id, number, kind, submitted_at_ms + number * 1000, data, 'admin', '127.0.0.1'
    from jobs cross join kinds order by submit_seq, number`);
}

function seal(dataDir: string, jobs: number): void {
  const paths = storePaths(dataDir);
  const database = openSync(paths.database, 'r');
  const sums = openSync(paths.sums, 'w+', 0o600);
  try {
    const pages = writeAllPageSums({ database, sums, pageBytes: 4_096 });
    createWitness(paths.witness, {
      ...firstWitness,
      isOpen: false,
      pages,
      commits: 1,
      lastEventSeq: jobs * eventsPerJob,
      lastSubmitSeq: jobs,
    });
  } finally {
    closeSync(sums);
    closeSync(database);
  }
}
