import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { aMember, arrayAnswers, arrayId, memberId } from '../testing/arrayFixture.ts';
import { aCause, anAttempt, submittedAtMs } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const ran = (seconds: number) => [
  anAttempt({
    state: 'ended',
    runningAtMs: submittedAtMs,
    endedAtMs: submittedAtMs + seconds * 1_000,
  }),
];
const ledger = [{ kind: 'productive', cause: null, gpuSeconds: 1_800 }] as const;
const pending = {
  kind: 'no_gpus_free',
  message: 'waiting for 2 free GPUs',
  remedy: 'wait, or ask for fewer GPUs',
} as const;
const members = [
  aMember(0, { state: 'succeeded', attempts: ran(5), ledger }),
  aMember(1, {
    state: 'failed',
    attempts: ran(9),
    cause: aCause('exit_code', 'rank 0 on node-1 exited with code 3'),
  }),
  aMember(2, {
    state: 'failed',
    attempts: ran(2),
    cause: aCause('exit_code', 'rank 0 on node-2 exited with code 3'),
  }),
  aMember(3, { pending }),
  // It was requeued: the job before it no longer counts.
  aMember(0, { id: memberId(9), submitSeq: 0, state: 'failed', cause: aCause('hung', 'no progress') }),
];
const answers = arrayAnswers(() => members, 4);

test('job of an array shows it as a whole: states, causes, GPU time, the longest runs and what to do', async () => {
  const { exitCode, stdout, requests } = await run(['job', 'sweep'], answers);
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toContain(`sweep  ${arrayId}  array of 4 jobs\n`);
  expect(stdout).toContain('1 queued, 1 succeeded, 2 failed\n');
  expect(stdout).toMatch(/GPU time +30 min productive\n/);
  expect(stdout).toContain('  2 jobs: rank 0 on node-1 exited with code 3 (exit_code)\n    indexes 1-2\n');
  expect(stdout).toContain('  1 job: waiting for 2 free GPUs (no_gpus_free)\n    index 3\n');
  expect(stdout).toMatch(/sweep\[1\] +job_000000000001 +failed +9 s\n/);
  expect(stdout).toContain(
    `  muster logs '${arrayId}[1]'\n  muster requeue ${arrayId}\n  muster stop ${arrayId}\n`,
  );
  expect(stdout).not.toContain('hung');
  expect(
    requests.filter(({ method }) => method === 'ListJobs'),
    'page after page',
  ).toHaveLength(3);
});

test('jobs that are still being stored count as queued, and a list says that there are more', async () => {
  const large = arrayAnswers(
    () => members,
    104,
    2,
    () => 100,
  );
  const { stdout } = await run(['job', 'sweep'], large);
  expect(stdout).toContain('101 queued, 1 succeeded, 2 failed\n');
  const listed = await run(['jobs', '--array', 'sweep', '--all'], large);
  expect(listed.stderr).toContain('100 more jobs of the array are queued and being stored.\n');
  const { stdout: json } = await run(['jobs', '--array', 'sweep', '-o', 'json'], large);
  expect(JSON.parse(json)).toMatchObject({ notStored: 100 });
});

test('explain of an array begins with what to do, and is never wider than the terminal', async () => {
  const { stdout } = await run(['explain', arrayId], answers, {
    columns: 60,
    environment: { colour: 'never' },
  });
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    '2 of 4 jobs did not succeed; cause: rank 0 on node-1 exited with code 3 (2 jobs). 1 job waits:',
  );
  expect(stdout.indexOf('Next\n')).toBeLessThan(stdout.indexOf('Causes\n'));
  expect(stdout).toContain('wait, or ask for fewer GPUs');
  expect(Math.max(...stdout.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(60);
});

test('-o json of both is the summary that docs/json.md describes', async () => {
  const { stdout } = await run(['job', 'sweep', '-o', 'json'], answers);
  expect((await run(['explain', 'sweep', '-o', 'json'], answers)).stdout).toBe(stdout);
  const summary = JSON.parse(stdout) as Record<string, unknown>;
  expect(summary).toMatchObject({
    array: { id: arrayId, name: 'sweep', size: 4 },
    counts: { queued: 1, succeeded: 1, failed: 2, running: 0 },
    causes: [{ kind: 'exit_code', count: 2, indexes: [1, 2] }],
    waits: [{ kind: 'no_gpus_free', count: 1, indexes: [3] }],
    longest: [{ index: 1, ranMs: 9_000 }, { index: 0 }, { index: 2 }],
  });
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/json.md'), 'utf8');
  const section = page.split('\n### ArraySummary\n')[1]?.split('\n### ')[0] ?? '';
  const documented = Array.from(section.matchAll(/^\| `(\w+)` /gm), ([, name]) => name);
  expect(documented).toEqual(Object.keys(summary));
});

test('jobs are one group whatever their rank and node, and two where their exit codes differ', async () => {
  const failed = (index: number, message: string) =>
    aMember(index, { state: 'failed', cause: aCause('exit_code', message) });
  const { stdout } = await run(
    ['job', 'sweep', '-o', 'json'],
    arrayAnswers(
      () => [
        failed(0, 'rank 0 on node-1 exited with code 134'),
        failed(1, 'rank 1 on node-12 exited with code 134'),
        failed(2, 'rank 0 on node-1 exited with code 137'),
      ],
      3,
    ),
  );
  expect(JSON.parse(stdout)).toMatchObject({ causes: [{ indexes: [0, 1] }, { indexes: [2] }] });
});

test('an array of one job is that job', async () => {
  const only = aMember(0, { state: 'succeeded' });
  const { wire } = await import('../testing/fakeCoordinator.ts');
  const { stdout } = await run(['job', 'sweep'], {
    ResolveJob: () => ({ array: { id: arrayId, size: 1, name: 'sweep' } }),
    GetJob: () => wire.job(only),
  });
  expect(stdout).toContain(`sweep[0]  ${only.id}\n`);
});
