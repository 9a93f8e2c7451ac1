import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { aMember, arrayAnswers, arrayId, memberId } from '../testing/arrayFixture.ts';
import { run } from '../testing/testContext.ts';

const members = [
  aMember(0, { state: 'succeeded' }),
  aMember(1, { state: 'failed' }),
  aMember(2, { state: 'cancelled' }),
  aMember(3, { state: 'running' }),
];
const again = (index: number) => `job_a${String(index).padStart(11, '0')}`;
const indexOf = (jobId: string) => Number(jobId.slice(4));
const answers = {
  ...arrayAnswers(() => members, 4),
  RequeueJob: ({ jobId }: { jobId: string }) => ({ jobId: again(indexOf(jobId)), newJob: true }),
};
const requeuedIds = (requests: readonly { method: string; request: unknown }[]) =>
  requests
    .filter(({ method }) => method === 'RequeueJob')
    .map(({ request }) => (request as { jobId: string }).jobId)
    .toSorted();

test('requeue of an array takes the jobs that did not succeed, and says so in one line', async () => {
  const { exitCode, stdout, stderr, requests } = await run(['requeue', 'sweep'], answers);
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: `${arrayId}\n` });
  expect(stderr).toBe(`requeued 2 of 4 jobs (1 failed, 1 cancelled); see them with: muster job ${arrayId}\n`);
  expect(requeuedIds(requests)).toEqual([memberId(1), memberId(2)]);
  const ids = requests.map(({ request }) => (request as { requestId?: string }).requestId).filter(Boolean);
  expect(new Set(ids).size, 'each under a request id of its own').toBe(2);
});

test('what was requeued is not requeued again', async () => {
  const later = [
    ...members,
    aMember(1, { id: again(1), submitSeq: 8 }),
    aMember(2, { id: again(2), submitSeq: 9 }),
  ];
  const { exitCode, stdout, stderr, requests } = await run(['requeue', 'sweep'], {
    ...answers,
    ...arrayAnswers(() => later, 4),
  });
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: '' });
  expect(stderr).toMatch(
    /^Nothing to requeue: no job of sweep has failed \(2 queued, 1 running, 1 succeeded\)/,
  );
  expect(requeuedIds(requests)).toEqual([]);
});

test('--all takes all of them, and wants --force where one runs', async () => {
  const asked = await run(['requeue', 'sweep', '--all'], answers);
  expect(asked.exitCode).toBe(exitCodes.refused);
  expect(asked.stderr).toContain(`1 job of sweep (${arrayId}) has not ended; requeueing it stops what runs`);
  expect(asked.stderr).toContain(`To confirm: muster requeue ${arrayId} --all --force`);
  expect(requeuedIds(asked.requests)).toEqual([]);
  const forced = await run(['requeue', 'sweep', '--all', '--force'], answers);
  expect(requeuedIds(forced.requests)).toEqual([0, 1, 2, 3].map(memberId));
  const single = await run(['requeue', memberId(1), '--all'], answers);
  expect(single).toMatchObject({ exitCode: exitCodes.usage });
  const edited = await run(['requeue', 'sweep', '--all', '--force', '--set', 'env.LR=1'], answers);
  expect(edited).toMatchObject({ exitCode: exitCodes.usage });
  expect(edited.stderr).toContain('--set changes jobs that have ended');
});

test('a job that is refused keeps none of the others from being requeued', async () => {
  const RequeueJob = ({ jobId }: { jobId: string }) => {
    if (jobId === memberId(1)) throw new MusterError('failed_precondition', 'there is no good checkpoint');
    return answers.RequeueJob({ jobId });
  };
  const { exitCode, stdout, stderr } = await run(['requeue', 'sweep', '--from', '500', '-o', 'json'], {
    ...answers,
    RequeueJob,
  });
  expect(exitCode).toBe(exitCodes.refused);
  expect(JSON.parse(stdout)).toEqual({
    arrayId,
    requeued: [{ index: 2, from: memberId(2), jobId: again(2) }],
    refused: [{ index: 1, jobId: memberId(1), message: 'there is no good checkpoint' }],
  });
  expect(stderr).toContain('1 job was refused: there is no good checkpoint\n');
});

test('requeue --wait of an array waits for the jobs in the places of those before', async () => {
  let looks = 0;
  const { exitCode, stderr } = await run(['requeue', 'sweep', '--wait'], {
    ...answers,
    ...arrayAnswers(() => {
      looks += 1;
      const state = looks < 6 ? ('running' as const) : ('succeeded' as const);
      const fresh = [1, 2].map((index) => aMember(index, { id: again(index), submitSeq: 10 + index, state }));
      const before = members.map((member) => ({
        ...member,
        ...(member.state === 'running' ? { state } : {}),
      }));
      return looks < 3 ? members : [...before, ...fresh];
    }, 4),
  });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stderr).toContain('all 4 jobs succeeded\n');
  expect(stderr).not.toContain('sweep[1] failed');
});

test('requeue --wait ends although retention has removed jobs of the array', async () => {
  let looks = 0;
  // Job 0 is gone. The others go back into the queue under their own ids.
  const { exitCode, stderr } = await run(['requeue', 'sweep', '--all', '--force', '--wait'], {
    ...answers,
    RequeueJob: ({ jobId }: { jobId: string }) => ({ jobId, newJob: false }),
    ...arrayAnswers(() => {
      looks += 1;
      const state = looks < 6 ? ('running' as const) : ('succeeded' as const);
      return [1, 2, 3].map((index) => aMember(index, { state }));
    }, 4),
  });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stderr).toMatch(/all \d jobs succeeded\n/);
});

test('requeue --wait -o json prints the requeued jobs, and what became of the array', async () => {
  const { exitCode, stdout } = await run(['requeue', 'sweep', '--all', '--force', '--wait', '-o', 'json'], {
    ...answers,
    RequeueJob: ({ jobId }: { jobId: string }) => ({ jobId, newJob: false }),
    ...arrayAnswers(() => [0, 1, 2, 3].map((index) => aMember(index, { state: 'succeeded' })), 4),
  });
  expect(exitCode).toBe(exitCodes.ok);
  const documents = stdout
    .split(/\n(?=\{)/)
    .filter((each) => each !== '')
    .map((each): unknown => JSON.parse(each));
  expect(documents).toMatchObject([{ requeued: [{}, {}, {}, {}] }, { counts: { succeeded: 4 } }]);
});
