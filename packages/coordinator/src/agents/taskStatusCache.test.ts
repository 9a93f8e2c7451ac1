import type { TrainingSign } from '@muster/common/training';
import { expect, test } from 'vitest';
import { anAttempt, anExit, aReport, aTask, jobIdOf, nodeNameOf, someMs } from '../modelFixture.ts';
import { TaskStatusCache } from './taskStatusCache.ts';

const node = nodeNameOf('node-1');
const nothing = { frozen: false, doing: null, training: null, hang: null, signs: [] };
const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
const sent = (sentBoottimeMs: number, sentWallMs = 0) => ({ sentBoottimeMs, sentWallMs });

test('a task is what its agent reported last, and nothing before', () => {
  const taskStatus = new TaskStatusCache();
  expect(taskStatus.of(task)).toEqual(nothing);
  taskStatus.record(aReport(task, { doing: 'pulls image train:2' }));
  expect(taskStatus.of(task)).toEqual({ ...nothing, doing: 'pulls image train:2' });
  taskStatus.record(aReport(task, { frozen: true }));
  expect(taskStatus.of(task)).toEqual({ ...nothing, frozen: true });
  expect(taskStatus.of({ ...task, attempt: 2 })).toEqual(nothing);
});

test('where its training is, that it stands still and what was noticed of it go with the task', () => {
  const taskStatus = new TaskStatusCache();
  const training = {
    framework: null,
    latest: { step: 5 },
    totalSteps: null,
    etaMs: null,
    rows: 5,
    atMs: someMs,
  };
  const hang = { quietForMs: 600_000, usualMs: 1_000, gpus: 'idle', rank: 0 } as const;
  const sign: TrainingSign = {
    kind: 'nan_loss',
    step: 5,
    lastGoodStep: 4,
    rank: 0,
    line: 7,
    text: 'loss nan',
  };
  taskStatus.record(aReport(task, { training, hang }));
  taskStatus.recordSign(task, { ...sign, step: 4 });
  taskStatus.recordSign(task, { ...sign, kind: 'loss_spike' });
  taskStatus.recordSign(task, sign);
  taskStatus.record(aReport(task, { training }));
  const signs = [{ ...sign, kind: 'loss_spike' }, sign];
  expect(taskStatus.of(task)).toEqual({ ...nothing, training, signs });
  taskStatus.record(aReport(task, { state: 'ended', exit: anExit() }));
  expect(taskStatus.of(task)).toEqual(nothing);
});

test('what an agent is busy with has a length', () => {
  const taskStatus = new TaskStatusCache();
  taskStatus.record(aReport(task, { doing: 'x'.repeat(10_000) }));
  expect(taskStatus.of(task).doing).toHaveLength(200);
});

test.each([
  ['runs', [false], [false]],
  ['is frozen, and says so again', [true, true], [true, false]],
  ['is thawed', [true, false, false], [true, true, false]],
])('it is noticed once when a task %s', (_, frozen, noticed) => {
  const taskStatus = new TaskStatusCache();
  expect(frozen.map((each) => taskStatus.record(aReport(task, { frozen: each })))).toEqual(noticed);
});

test('one that has ended is neither frozen nor thawed, and is forgotten', () => {
  const taskStatus = new TaskStatusCache();
  taskStatus.record(aReport(task, { frozen: true }));
  expect(taskStatus.record(aReport(task, { state: 'ended', exit: anExit() }))).toBe(false);
  expect(taskStatus.of(task).frozen).toBe(false);
  // Also when it ended without a word of its agent.
  taskStatus.record(aReport(task, { frozen: true }));
  taskStatus.committed({ attempts: [{ jobId: task.jobId, attempt: anAttempt(1) }], removedNodes: [] });
  expect(taskStatus.of(task).frozen, 'it goes on').toBe(true);
  const ended = anAttempt(1, { tasks: [aTask(0, { state: 'ended', exit: anExit() })] });
  taskStatus.committed({ attempts: [{ jobId: task.jobId, attempt: ended }], removedNodes: [] });
  expect(taskStatus.of(task).frozen).toBe(false);
});

test('a moment of a node is converted by the heartbeat that came with the smallest delay', () => {
  const taskStatus = new TaskStatusCache();
  expect(taskStatus.wallOf(node, 'boot', 1_000)).toBeNull();
  for (const [sentMs, delayMs] of [
    [10_000, 900],
    [15_000, 20],
    [20_000, 400],
  ] as const)
    taskStatus.noteClock(node, 'boot', sent(sentMs), someMs + sentMs + delayMs);
  expect(taskStatus.wallOf(node, 'boot', 12_000)).toBe(someMs + 12_020);
});

test('clocks that drift apart are followed', () => {
  const taskStatus = new TaskStatusCache();
  for (let beat = 0; beat < 100; beat += 1)
    taskStatus.noteClock(node, 'boot', sent(beat * 1_000), someMs + beat * 1_001);
  expect(taskStatus.wallOf(node, 'boot', 99_000)).toBeLessThanOrEqual(someMs + 99_099);
  expect(taskStatus.wallOf(node, 'boot', 99_000)).toBeGreaterThan(someMs + 99_070);
});

test('another boot has another clock', () => {
  const taskStatus = new TaskStatusCache();
  taskStatus.noteClock(node, 'first', sent(1_000_000), someMs);
  taskStatus.noteClock(node, 'second', sent(5), someMs + 10);
  expect(taskStatus.wallOf(node, 'first', 1_000_000)).toBeNull();
  expect(taskStatus.wallOf(node, 'second', 0)).toBe(someMs + 5);
});

test("a moment by a node's wall clock is converted by its newest message, of whatever boot it was", () => {
  const taskStatus = new TaskStatusCache();
  expect(taskStatus.wallOfNode(node, someMs)).toBeNull();
  taskStatus.noteClock(node, 'first', sent(1_000), someMs);
  expect(taskStatus.wallOfNode(node, someMs)).toBeNull();
  taskStatus.noteClock(node, 'first', sent(2_000, someMs - 600_000), someMs);
  expect(taskStatus.wallOfNode(node, someMs - 660_000)).toBe(someMs - 60_000);
  taskStatus.noteClock(node, 'second', sent(5, someMs + 10), someMs + 10);
  expect(taskStatus.wallOfNode(node, someMs - 60_000)).toBe(someMs - 60_000);
});

test('of a node that was removed no clock is known', () => {
  const taskStatus = new TaskStatusCache();
  taskStatus.noteClock(node, 'boot', sent(1_000), someMs);
  taskStatus.committed({ attempts: [], removedNodes: [node] });
  expect(taskStatus.wallOf(node, 'boot', 1_000)).toBeNull();
});

test('what an earlier run has learned of a clock counts until messages without delay have come', () => {
  const taskStatus = new TaskStatusCache();
  taskStatus.noteClock(node, 'boot', sent(100_000), someMs + 106_000, someMs);
  expect(taskStatus.wallOfBoottime(node, 90_000)).toBe(someMs + 90_000);
  for (let beat = 1; beat <= 16; beat += 1)
    taskStatus.noteClock(node, 'boot', sent(100_000 + beat), someMs + 100_300 + beat);
  expect(taskStatus.wallOfBoottime(node, 90_000)).toBe(someMs + 90_300);
});
