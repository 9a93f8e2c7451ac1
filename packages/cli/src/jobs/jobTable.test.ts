/** What the coordinator leaves out of a brief job is nothing that a table shows. */
import type { ArrayId } from '@muster/common/ids';
import type { TrainingProgress } from '@muster/common/training';
import type { Cause, JobView } from '@muster/common/views';
import { jobFromWire, jobToWire } from '@muster/common/wire/codec';
import { musterService } from '@muster/common/wire/service';
import { sent } from '@muster/common/wire/wireFixture';
import type { TaskStatus } from '@muster/coordinator/agents/taskStatusCache';
import type { Attempt, Job } from '@muster/coordinator/model';
import { aJob, anAttempt, anExit, aSpec, aTask, queuedState, someMs } from '@muster/coordinator/modelFixture';
import { briefJobView, jobView } from '@muster/coordinator/views';
import { expect, test } from 'vitest';
import { makeColours } from '../output/colours.ts';
import { aView } from '../testing/testContext.ts';
import { byMetric, formatJobs, jobColumns } from './jobTable.ts';
import { markedState, nameOf, whyText } from './summary.ts';

const colours = makeColours(true);

const cause: Cause = {
  kind: 'cuda_oom',
  message: 'rank 1 on node-1 exited with code 1: CUDA out of memory',
  nodeRank: 1,
  node: 'node-1',
  evidence: { line: 13, text: 'CUDA out of memory', rank: 1 },
  blame: 'job',
};

function training(loss: number): TrainingProgress {
  const latest = { step: 7, train_loss: loss };
  return { framework: 'nanogpt', latest, totalSteps: 100, etaMs: 61_000, rows: 3, atMs: someMs };
}

const running = anAttempt(2, {
  state: 'running',
  runningAtMs: someMs + 5_000,
  resume: { name: 'checkpoint-100', step: 100 },
  tasks: [aTask(0, { state: 'running', gpuUuids: ['GPU-1'] }), aTask(1)],
});
const hung = {
  ...running,
  signs: [{ kind: 'nan_loss', step: 80, lastGoodStep: 70 }],
  hungAtMs: someMs + 9_000,
} as const;
const ended = anAttempt(3, {
  state: 'ended',
  runningAtMs: someMs + 5_000,
  endedAtMs: someMs + 8_000,
  hungAtMs: someMs + 7_000,
  cause: { ...cause, kind: 'hung' },
  tasks: [aTask(0, { state: 'ended', exit: anExit({ exitCode: 1, training: training(0.25) }) })],
});
const array = { id: 'array_0123456789ab' as ArrayId, index: 3, size: 5 };
const sweep = aSpec({ name: 'sweep-{array_index}', array: '0-4', env: { SEED: '{array_index}' } });
const labelled = aSpec({ labels: { team: 'vision', urgent: '' }, project: 'maps', resources: { gpus: 2 } });
const gang = aSpec({ resources: { nodes: { min: 2, max: 4 }, gpus: 8 } });

/** Jobs with their attempts, the newest job last. */
const jobs: readonly (readonly [Partial<Job>, readonly Attempt[]])[] = [
  [{}, []],
  [{ spec: sweep, array }, []],
  [{ spec: labelled, state: queuedState({ lastCause: cause }), lastAttempt: 3 }, [ended]],
  [{ spec: gang, state: { kind: 'starting', attempt: running }, lastAttempt: 2 }, [running]],
  [{ spec: gang, state: { kind: 'running', attempt: hung }, lastAttempt: 2 }, [hung]],
  [
    { state: { kind: 'stopping', attempt: running, outcome: { next: 'failed', cause } }, lastAttempt: 2 },
    [running],
  ],
  [{ state: { kind: 'succeeded', endedAtMs: someMs + 8_000 }, lastAttempt: 3 }, [ended]],
  [{ state: { kind: 'failed', endedAtMs: someMs + 8_000, cause }, lastAttempt: 3 }, [ended]],
  [{ state: { kind: 'cancelled', endedAtMs: someMs + 8_000, cause }, lastAttempt: 0 }, []],
];

const quiet: TaskStatus = { frozen: false, doing: null, training: null, hang: null, signs: [] };
const statuses: readonly (readonly [string, TaskStatus])[] = [
  ['say nothing', quiet],
  ['are frozen', { ...quiet, frozen: true }],
  ['are being prepared', { ...quiet, doing: 'pulls its image' }],
  ['train', { ...quiet, training: training(2.5) }],
  ['hang', { ...quiet, hang: { quietForMs: 60_000, usualMs: 500, gpus: 'idle', rank: null } }],
];

test.each(statuses)('a table of brief jobs is that of whole ones while tasks %s', (_name, status) => {
  const nowMs = someMs + 60_000;
  const taskStatus = { of: () => status };
  const whole: JobView[] = [];
  const brief: JobView[] = [];
  for (const [index, [fields, attempts]] of jobs.entries()) {
    const job = aJob(index + 1, fields);
    whole.push(jobView(job, attempts, undefined, taskStatus, nowMs));
    brief.push(briefJobView(job, attempts, undefined, taskStatus));
  }
  const read = (views: readonly JobView[]) =>
    sent(musterService.ListJobs, { jobs: views.map(jobToWire), more: false }).jobs.map(jobFromWire);
  const shown = (views: readonly JobView[]) => {
    const decoded = read(views);
    const tables = [null, 60, 100].flatMap((width) =>
      [undefined, jobColumns].map((columns) =>
        formatJobs(byMetric(decoded, 'train_loss'), {
          ...aView({ width, colours, nowMs }),
          columns,
          metric: 'train_loss',
        }),
      ),
    );
    return [...tables, ...decoded.map((job) => [job.id, nameOf(job), markedState(job), whyText(job)])];
  };

  expect(shown(brief)).toEqual(shown(whole));
  const bytes = (views: readonly JobView[]) => Buffer.byteLength(JSON.stringify(views.map(jobToWire)));
  expect(bytes(brief)).toBeLessThan(bytes(whole) * 0.6);
});
