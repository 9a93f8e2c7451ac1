import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { pythonWithTorch, tempDir } from '../services.ts';
import { type Beat, boottimeMs, parseBeats, readBeats, violations } from './signOfLife.ts';

/** Beats of a process every 25 ms. */
function life(attempt: number, fromMs: number, untilMs: number, rank = 0): readonly Beat[] {
  const count = Math.floor((untilMs - fromMs) / 25) + 1;
  return Array.from({ length: count }, (_, index) => ({
    atMs: fromMs + index * 25,
    job: 'job_a',
    attempt,
    rank,
    pid: 100 * attempt + rank,
  }));
}

describe('a history is fine', () => {
  test('when attempts follow each other', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(1, 1_010, 1_990, 1), ...life(2, 2_001, 3_000)];
    expect(violations(beats, 'job_a', { endSeenMs: 3_000 })).toEqual([]);
  });

  test('when an attempt is frozen in between and goes on', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(1, 20_000, 21_000)];
    expect(violations(beats, 'job_a', { endSeenMs: 21_000 })).toEqual([]);
  });

  test('when the next attempt keeps its distance from one that was fenced', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(2, 4_000, 5_000)];
    expect(violations(beats, 'job_a', { fenced: [{ attempt: 1, rank: 0 }] })).toEqual([]);
  });

  test('when ranks that were not fenced, and are known to be dead, lived longer', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(1, 1_000, 3_500, 1), ...life(2, 4_000, 5_000)];
    expect(violations(beats, 'job_a', { fenced: [{ attempt: 1, rank: 0 }] })).toEqual([]);
    expect(violations(beats, 'job_a', { fenced: [{ attempt: 1, rank: 1 }] })).toHaveLength(1);
  });

  test('whatever other jobs do', () => {
    const other = life(2, 1_500, 9_000).map((beat) => ({ ...beat, job: 'job_b' }));
    expect(violations([...life(1, 1_000, 2_000), ...other], 'job_a', { endSeenMs: 2_000 })).toEqual([]);
  });
});

describe('a history is bad', () => {
  test('when two attempts are alive at the same time', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(2, 1_900, 3_000)];
    expect(violations(beats, 'job_a')).toEqual([
      'job_a: attempt 1 (rank 0, pid 100) was alive 100 ms after attempt 2 (rank 0, pid 200) had begun',
    ]);
  });

  test('when only one rank of the old attempt lives on', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(1, 1_000, 6_000, 3), ...life(2, 5_000, 7_000)];
    expect(violations(beats, 'job_a')).toEqual([
      'job_a: attempt 1 (rank 3, pid 103) was alive 1000 ms after attempt 2 (rank 0, pid 200) had begun',
    ]);
  });

  test('when a fenced attempt comes back to life after those that followed it', () => {
    const beats = [
      ...life(1, 1_000, 2_000),
      ...life(2, 5_000, 6_000),
      ...life(3, 7_000, 8_000),
      ...life(1, 9_000, 9_000),
    ];
    expect(violations(beats, 'job_a')).toHaveLength(2);
  });

  test('when the next attempt begins within the margin of a fence', () => {
    const beats = [...life(1, 1_000, 2_000), ...life(2, 3_999, 5_000)];
    expect(violations(beats, 'job_a')).toEqual([]);
    expect(violations(beats, 'job_a', { fenced: [{ attempt: 1, rank: 0 }] })).toEqual([
      'job_a: attempt 2 (rank 0, pid 200) began 1999 ms after the last sign of life of attempt 1 (rank 0, pid 100), ' +
        'which was fenced: less than 2000 ms',
    ]);
  });

  test('when something lives on after the end', () => {
    expect(violations(life(1, 1_000, 2_000), 'job_a', { endSeenMs: 1_990 })).toEqual([
      'job_a: attempt 1 (rank 0, pid 100) was alive 10 ms after the job had ended',
    ]);
  });

  test('when there is none', () => {
    expect(violations(life(1, 1_000, 2_000), 'job_b')).toEqual(['job_b left no sign of life']);
  });
});

test('a line that is no sign of life is refused, and one that is being written is left out', () => {
  expect(parseBeats('12 job_a 1 0 7\n13 job_a', 'a.beats')).toEqual([
    { atMs: 12, job: 'job_a', attempt: 1, rank: 0, pid: 7 },
  ]);
  expect(() => parseBeats('12 job_a 1 0\n', 'a.beats')).toThrow('a.beats: "12 job_a 1 0" is no sign of life');
});

test('the program beats as long as it runs, by the clock that the checker reads', async () => {
  const python = await pythonWithTorch();
  const { path } = tempDir('beats');
  const startedAtMs = boottimeMs() - 20;
  const program = fileURLToPath(new URL('programs/signOfLife.py', import.meta.url));
  const env = { MUSTER_JOB_ID: 'job_a', MUSTER_ATTEMPT: '2', MUSTER_NODE_RANK: '1' };
  const child = spawn(python, [program, path, '0.5'], { env, stdio: 'inherit' });
  expect(await once(child, 'exit')).toEqual([0, null]);
  const beats = readBeats(path);
  expect(beats.length).toBeGreaterThan(1);
  expect(new Set(beats.map(({ job, attempt, rank, pid }) => `${job} ${attempt} ${rank} ${pid}`))).toEqual(
    new Set([`job_a 2 1 ${child.pid}`]),
  );
  expect(violations(beats, 'job_a', { endSeenMs: boottimeMs() })).toEqual([]);
  expect(violations(beats, 'job_a', { endSeenMs: startedAtMs })).toHaveLength(1);
});
