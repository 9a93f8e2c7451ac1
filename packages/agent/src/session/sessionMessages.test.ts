import type { JobId } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { helloTasksMax, observedMax, sessionBytesMax } from '@muster/common/wire/agentLimits';
import { agentHubService } from '@muster/common/wire/service';
import { expect, test } from 'vitest';
import { fittingHello, heartbeatTasks, helloTasks } from './sessionMessages.ts';

function reports(count: number, state: TaskReport['state'], from = 0): readonly TaskReport[] {
  return Array.from({ length: count }, (_, index) => ({
    task: { jobId: `job_${String(from + index).padStart(12, '0')}` as JobId, attempt: 1, nodeRank: 0 },
    state,
    exit: null,
    startedAtMs: null,
    runningForMs: null,
    startedBoottimeMs: null,
    endedBoottimeMs: null,
    frozen: false,
    doing: null,
    trainingComplete: false,
    training: null,
    hang: null,
  }));
}

test('what may run is in every heartbeat, however many ended tasks are still kept', () => {
  const all = [...reports(5_000, 'ended'), ...reports(3, 'running', 10_000)];
  const sent = heartbeatTasks(all);
  expect(sent).toHaveLength(observedMax);
  expect(sent.slice(0, 3).map(({ state }) => state)).toEqual(Array(3).fill('TASK_STATE_RUNNING'));
  expect(helloTasks(all)).toHaveLength(helloTasksMax);
  const few = heartbeatTasks([...reports(1, 'ended'), ...reports(1, 'running', 1)]);
  expect(
    few.map(({ state }) => state),
    'else in their order',
  ).toEqual(['TASK_STATE_ENDED', 'TASK_STATE_RUNNING']);
});

test('a Hello says what a task that runs holds, for a coordinator that does not know it', () => {
  const [first, second] = reports(2, 'running');
  if (first === undefined || second === undefined) throw new Error('two reports');
  const assignment = { spec: { name: 'llama' } };
  const running = [{ task: first.task, assignment, gpuUuids: ['GPU-a'] }];
  const sent = helloTasks([first, second], running);
  expect(sent[0]).toMatchObject({ jobName: 'llama', gpuUuids: ['GPU-a'] });
  expect(sent[1]).not.toHaveProperty('gpuUuids');
});

test('a Hello says as many checkpoints as fit, which are reported again later, and all that may run', () => {
  const checkpoints = Array.from({ length: 4_000 }, () => ({ checkpoint: { name: 'x'.repeat(500) } }));
  const observed = [...reports(10, 'running'), ...reports(4_000, 'ended', 10)].map(({ task }) => ({
    task,
    doing: 'y'.repeat(400),
  }));
  const { hello } = fittingHello({ agentVersion: '1', checkpoints, observed });
  expect(agentHubService.Session.requestSerialize({ hello: hello ?? null }).length).toBeLessThanOrEqual(
    sessionBytesMax,
  );
  expect(hello).toMatchObject({ agentVersion: '1', checkpoints: [] });
  expect(hello?.observed?.length).toBeGreaterThanOrEqual(observedMax);
  expect(hello?.observed?.[0]?.task).toEqual(observed[0]?.task);
  const small = { agentVersion: '1', checkpoints: checkpoints.slice(0, 2) };
  expect(fittingHello(small).hello).toEqual(small);
});
