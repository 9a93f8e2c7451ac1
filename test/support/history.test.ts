import { nothingRan } from '@muster/common/cause';
import type { JobView, TaskEnd } from '@muster/common/views';
import { describe, expect, test } from 'vitest';
import { contradictions, parseHistory } from './history.ts';

const exited = (exitCode: number | null): TaskEnd => ({
  ...nothingRan,
  exitCode,
  signal: exitCode === null ? 'SIGKILL' : null,
  finishedAtMs: 0,
});

/** A job of which each attempt had one task, with the exit codes given. */
function aJob(id: string, exitCodes: readonly (number | null)[]): JobView {
  return {
    id,
    name: 'job',
    project: 'default',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    user: 'admin',
    state: 'failed',
    spec: {},
    submittedAtMs: 0,
    endedAtMs: 0,
    pending: null,
    cause: null,
    attempts: exitCodes.map((exitCode, index) => ({
      number: index + 1,
      state: 'ended',
      tasks: [
        {
          nodeRank: 0,
          node: 'node-1',
          gpuUuids: [],
          state: 'ended',
          exit: exited(exitCode),
          frozen: false,
          doing: null,
          address: null,
          gpuIndexes: [],
        },
      ],
      cause: null,
      allocatedAtMs: 0,
      runningAtMs: 0,
      endedAtMs: 0,
      masterAddr: null,
      masterPort: null,
      gpuUsage: null,
      resume: null,
      leaseMs: null,
      signs: [],
      hungAtMs: null,
      firstStepAtMs: null,
      hangs: false,
    })),
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    submitSeq: 1,
    excludedNodes: [],
    checkpoints: [],
    training: null,
    ledger: [],
    phases: null,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    failures: 0,
    costUsd: null,
    outputAtMs: null,
  };
}

function check(history: readonly string[], jobs: readonly JobView[]): readonly string[] {
  return contradictions(parseHistory(`${history.join('\n')}\n`), jobs);
}

describe('a history', () => {
  test('of one attempt after the other is consistent', () => {
    const history = [
      'start job_a 1 0 100 10.00 -',
      'start job_b 1 0 101 10.10 -',
      'end job_b 1 0 101 10.20 0',
      'end job_a 1 0 100 11.00 7',
      'start job_a 2 0 102 11.00 -',
      'end job_a 2 0 102 12.00 0',
    ];
    expect(check(history, [aJob('job_a', [7, 0]), aJob('job_b', [0])])).toEqual([]);
  });

  test('with a killed task is consistent when nobody claims an exit code', () => {
    expect(check(['start job_a 1 0 100 10.00 -'], [aJob('job_a', [null])])).toEqual([]);
  });

  test.each([
    {
      what: 'a task that ran twice in one attempt',
      history: [
        'start job_a 1 0 100 10.00 -',
        'end job_a 1 0 100 10.10 0',
        'start job_a 1 0 101 10.20 -',
        'end job_a 1 0 101 10.30 0',
      ],
      jobs: [aJob('job_a', [0])],
      found: ['rank 0 of attempt 1 of job_a ran 2 times'],
    },
    {
      what: 'two attempts at the same time',
      history: [
        'start job_a 1 0 100 10.00 -',
        'start job_a 2 0 101 10.50 -',
        'end job_a 1 0 100 11.00 1',
        'end job_a 2 0 101 12.00 0',
      ],
      jobs: [aJob('job_a', [1, 0])],
      found: [
        'rank 0 of attempt 2 of job_a started at 10.5, while rank 0 of attempt 1 of job_a lived until 11',
      ],
    },
    {
      what: 'an attempt that begins after the next one',
      history: ['start job_a 2 0 101 10.00 -', 'start job_a 1 0 100 10.50 -'],
      jobs: [aJob('job_a', [null, null])],
      found: [
        'rank 0 of attempt 2 of job_a started at 10, while rank 0 of attempt 1 of job_a lived until 10.5',
      ],
    },
    {
      what: 'an exit code that nobody had',
      history: ['start job_a 1 0 100 10.00 -', 'end job_a 1 0 100 10.10 3'],
      jobs: [aJob('job_a', [0])],
      found: ['rank 0 of attempt 1 of job_a is said to have exited with 0, and exited with 3'],
    },
    {
      what: 'an end that never was',
      history: ['start job_a 1 0 100 10.00 -'],
      jobs: [aJob('job_a', [0])],
      found: ['rank 0 of attempt 1 of job_a is said to have exited with 0, and never ended'],
    },
    {
      what: 'a task that never ran',
      history: [],
      jobs: [aJob('job_a', [0])],
      found: ['rank 0 of attempt 1 of job_a is said to have exited, and never ran'],
    },
    {
      what: 'an attempt that nobody recorded',
      history: ['start job_a 2 0 100 10.00 -'],
      jobs: [aJob('job_a', [null])],
      found: ['rank 0 of attempt 2 of job_a ran, and there is no such attempt'],
    },
    {
      what: 'a lost job',
      history: ['start job_a 1 0 100 10.00 -'],
      jobs: [],
      found: ['job_a ran, and there is no such job'],
    },
  ])('with $what is refused', ({ history, jobs, found }) => {
    expect(check(history, jobs)).toEqual(found);
  });

  test('that no task can have written is an error', () => {
    expect(() => parseHistory('end job_a 1 0 100 10.00 0\n')).toThrow(
      'no task can have written: end job_a 1 0 100 10.00 0',
    );
    expect(() => parseHistory('start job_a 1 0 100 10.00 -\nend job_a 1 0 999 10.00 0\n')).toThrow(
      'end job_a 1 0 999',
    );
  });
});
