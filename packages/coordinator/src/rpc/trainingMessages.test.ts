import type { Client } from '@grpc/grpc-js';
import type { CheckpointFacts } from '@muster/common/checkpoints';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { TrainingProgress, TrainingSign } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import {
  checkpointSeenToWire,
  inventoryToWire,
  taskReportToWire,
  trainingSignToWire,
} from '@muster/common/wire/codec';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCheckpoint, anExit, anInventory, aReport, nodeNameOf, someGpus, someMs } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';
import { connected } from './agentFixture.ts';

const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
const sign: TrainingSign = {
  kind: 'nan_loss',
  step: 5,
  lastGoodStep: 4,
  rank: 0,
  line: 7,
  text: 'loss nan',
};
const training: TrainingProgress = {
  framework: 'nanogpt',
  latest: { step: 5, train_loss: 2.5 },
  notFinite: [],
  totalSteps: 10,
  etaMs: null,
  rows: 5,
  atMs: someMs,
};

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  const memory = new Memory('test');
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory });
  client = coordinator.client();
});
afterEach(() => coordinator.close());

/** The agent of rank 0 or 1, which holds its task from an earlier coordinator on. */
async function agentOf(nodeRank: number, fields: object = {}) {
  const name = `node-${nodeRank + 1}`;
  const inventory = inventoryToWire(anInventory({ gpus: someGpus(name, 1) }));
  const observed = [taskReportToWire(aReport({ ...task, nodeRank }))];
  return connected(coordinator, client, name, { inventory, observed, ...fields });
}

const jobNow = () => coordinator.state.jobs.get(runningJobId);
const names = () => jobNow()?.checkpoints.map(({ name }) => name) ?? [];
const eventsOfJob = () =>
  [...coordinator.memory.events.values()].filter(({ subject }) => subject === runningJobId);
const kinds = () => eventsOfJob().map(({ kind }) => kind);

function seen(fields: Partial<CheckpointFacts> = {}, of = task): AgentMessage {
  const checkpoint = { ...aCheckpoint(10), ...fields };
  return { checkpoint: checkpointSeenToWire({ task: of, checkpoint, shared: true, afterStop: false }) };
}

/** What is said after it has been handled, too. */
async function sendAndSettle(
  { send }: { send(message: AgentMessage): void },
  messages: readonly AgentMessage[],
) {
  for (const message of messages) send(message);
  send(seen({ name: 'the-last-one', step: 99 }));
  await vi.waitFor(() => expect(names()).toContain('the-last-one'));
}

test('a checkpoint that the node of its task has seen is kept with the job', async () => {
  const agent = await agentOf(0);
  agent.send(seen({ metrics: { eval_loss: 0.5 } }));
  await vi.waitFor(() => expect(names()).toEqual(['checkpoint-10']));
  const [view] = (await coordinator.api.getJob(runningJobId)).checkpoints;
  expect(view).toMatchObject({
    step: 10,
    node: 'node-1',
    attempt: 1,
    shared: true,
    metrics: { eval_loss: 0.5 },
  });
  expect(kinds()).toContain('checkpoint.saved');
});

test('what was saved at the very end is known before the end, when a Hello tells of both', async () => {
  const ended = (nodeRank: number) => {
    const exit = anExit({ exitCode: 1 });
    return [taskReportToWire(aReport({ ...task, nodeRank }, { state: 'ended', exit }))];
  };
  await agentOf(1, { observed: ended(1) });
  await agentOf(0, { observed: ended(0), checkpoints: [seen().checkpoint] });
  const job = await vi.waitFor(async () => {
    const view = await coordinator.api.getJob(runningJobId);
    expect(view.attempts[0]?.state).toBe('ended');
    return view;
  });
  expect(job.checkpoints.map(({ name }) => name)).toEqual(['checkpoint-10']);
});

const tooMany = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`m${index}`, index]));
test.each<[string, Partial<CheckpointFacts>]>([
  ['without a name', { name: '' }],
  ['with a name of an endless length', { name: 'x'.repeat(513) }],
  ['with an absolute name', { name: '/etc/passwd' }],
  ['that climbs out of its directory', { name: 'a/../../b' }],
  ['with a name that ends in a climb', { name: 'a/..' }],
  ['with control characters in its name', { name: 'a\u001b[2Jb' }],
  ['with a line feed in its name', { name: 'a\nb' }],
  ['without a version', { version: '' }],
  ['with an endless version', { version: 'v'.repeat(65) }],
  ['of an endless format', { format: 'f'.repeat(65) }],
  ['with an endless digest', { digest: 'd'.repeat(129) }],
  ['with more metrics than there are', { metrics: tooMany }],
])('a checkpoint %s is refused in silence', async (_, fields) => {
  const agent = await agentOf(0);
  await sendAndSettle(agent, [seen(fields), { checkpoint: {} }, { checkpoint: { task } }]);
  expect(names()).toEqual(['the-last-one']);
  expect(agent.errors).toEqual([]);
});

test('the longest name, the most metrics and a dot in a name are taken; a problem has one line', async () => {
  const agent = await agentOf(0);
  const name = `a/.b/${'x'.repeat(507)}`;
  const metrics = Object.fromEntries(Object.entries(tooMany).slice(0, 32));
  const problem = `cut\noff ${'x'.repeat(1_000)}`;
  agent.send(seen({ name, metrics, verdict: 'corrupt', problem }));
  await vi.waitFor(() => expect(names()).toEqual([name]));
  expect(jobNow()?.checkpoints[0]?.problem).toMatch(/^cut off x{492}$/);
});

test('what another node says of a task, or of an attempt that is not current, counts for nothing', async () => {
  const [first, second] = [await agentOf(0), await agentOf(1)];
  second.send(seen({ name: 'not-mine' }));
  second.send({ trainingSign: { task, sign: trainingSignToWire(sign) } });
  // Its answer shows that the others were handled.
  second.send({ heartbeat: { seq: 9, sentBoottimeMs: 0, observed: [] } });
  await vi.waitFor(() =>
    expect(second.received.some(({ heartbeatAck }) => heartbeatAck?.seq === 9)).toBe(true),
  );
  await sendAndSettle(first, [seen({ name: 'of-another-attempt' }, { ...task, attempt: 2 })]);
  expect(names()).toEqual(['the-last-one']);
  expect(coordinator.taskStatus.of(task).signs).toEqual([]);
  expect(kinds()).not.toContain('training.nan_loss');
});

test('a sign is an event and is kept in mind, with one line of text', async () => {
  const agent = await agentOf(0);
  const text = `loss nan\n${'x'.repeat(1_000)}`;
  agent.send({ trainingSign: { task, sign: trainingSignToWire({ ...sign, text }) } });
  agent.send({ trainingSign: { task, sign: { ...trainingSignToWire(sign), kind: 'boredom' } } });
  await vi.waitFor(() => expect(kinds()).toContain('training.nan_loss'));
  const [noted, ...others] = coordinator.taskStatus.of(task).signs;
  expect(others).toEqual([]);
  expect(noted?.text).toMatch(/^loss nan x{491}$/);
});

async function reported(nodeRank: number, fields: Partial<TaskReport>) {
  const agent = await agentOf(nodeRank);
  agent.send({ report: taskReportToWire(aReport({ ...task, nodeRank }, fields)) });
  return agent;
}

test('where the training is, is shown while it runs, and as its end left it afterwards', async () => {
  const other = await agentOf(1);
  const agent = await reported(0, {
    training,
    hang: { quietForMs: 1, usualMs: 1, gpus: 'idle', rank: null },
  });
  await vi.waitFor(() => expect(coordinator.taskStatus.of(task).training).toEqual(training));
  expect(coordinator.taskStatus.of(task).hang).toMatchObject({ gpus: 'idle' });
  expect((await coordinator.api.getJob(runningJobId)).training).toEqual(training);
  const last = { ...training, rows: 6, framework: 'x'.repeat(65) };
  const exit = anExit({ training: last });
  agent.send({ report: taskReportToWire(aReport(task, { state: 'ended', exit })) });
  other.send({
    report: taskReportToWire(aReport({ ...task, nodeRank: 1 }, { state: 'ended', exit: anExit() })),
  });
  await vi.waitFor(() => expect(jobNow()).toBeUndefined());
  const { training: left } = await coordinator.api.getJob(runningJobId);
  expect(left).toEqual({ ...last, framework: null });
});

test('of a task that has ended, a heartbeat that comes late keeps nothing in mind', async () => {
  const agent = await reported(0, { state: 'ended', exit: anExit() });
  await vi.waitFor(() => expect(kinds()).toContain('task.ended'));
  const observed = [taskReportToWire(aReport(task, { training }))];
  agent.send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed } });
  await vi.waitFor(() =>
    expect(agent.received.some(({ heartbeatAck }) => heartbeatAck?.seq === 1)).toBe(true),
  );
  expect(jobNow()?.state.kind, 'the other rank goes on').toBe('running');
  expect(coordinator.taskStatus.of(task).training).toBeNull();
});

test('a program that has left its marker is done, whatever its exit code is, and that is reported once', async () => {
  const agent = await reported(0, { trainingComplete: true });
  await vi.waitFor(() =>
    expect(jobNow()?.state).toMatchObject({ kind: 'stopping', outcome: { next: 'succeeded' } }),
  );
  const observed = [taskReportToWire(aReport(task, { trainingComplete: true }))];
  for (const seq of [1, 2]) agent.send({ heartbeat: { seq, sentBoottimeMs: 0, observed } });
  await vi.waitFor(() =>
    expect(agent.received.some(({ heartbeatAck }) => heartbeatAck?.seq === 2)).toBe(true),
  );
  const exit = anExit({ exitCode: 1 });
  agent.send({ report: taskReportToWire(aReport(task, { state: 'ended', exit, trainingComplete: true })) });
  const other = await agentOf(1);
  other.send({
    report: taskReportToWire(aReport({ ...task, nodeRank: 1 }, { state: 'ended', exit: anExit() })),
  });
  await vi.waitFor(() => expect(coordinator.state.outcomes.get(runningJobId)).toBe('succeeded'));
  expect(kinds().filter((kind) => kind === 'training.complete')).toHaveLength(1);
});

test.each([
  ['a heartbeat', false],
  ['a Hello', true],
])('a marker that only %s tells of counts as well', async (_, inHello) => {
  const observed = [taskReportToWire(aReport(task, { trainingComplete: true }))];
  const agent = await agentOf(0, inHello ? { observed } : {});
  if (!inHello) agent.send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed } });
  await vi.waitFor(() => expect(jobNow()?.state.kind).toBe('stopping'));
});

test('a node that is going to be switched off says so in its Hello and in its status', async () => {
  const drainOf = (name: string) => coordinator.state.nodes.get(nodeNameOf(name))?.drain;
  await agentOf(0, { leavingInMs: 60_000 });
  expect(drainOf('node-1')).toMatchObject({ deadlineMs: coordinator.clock.wallMs() + 60_000 });
  const agent = await agentOf(1);
  expect(drainOf('node-2')).toBeNull();
  agent.send({ status: { leavingInMs: 0 } });
  await vi.waitFor(() => expect(drainOf('node-2')).toMatchObject({ deadlineMs: coordinator.clock.wallMs() }));
});

test('heartbeats are watched for hangs', async () => {
  const hang = { quietForMs: 600_000, usualMs: 1_000, gpus: 'pinned', rank: 3 } as const;
  const [first, second] = [await agentOf(0), await agentOf(1)];
  const beat = (nodeRank: number, fields: Partial<TaskReport>) => ({
    heartbeat: {
      seq: 1,
      sentBoottimeMs: 0,
      observed: [taskReportToWire(aReport({ ...task, nodeRank }, fields))],
    },
  });
  first.send(beat(0, {}));
  for (let count = 0; count < 2; count += 1) second.send(beat(1, { hang }));
  await vi.waitFor(async () => {
    await Promise.all(coordinator.hangWatch.run(coordinator.state, coordinator.loop));
    const hung = eventsOfJob().find(({ kind }) => kind === 'attempt.hung');
    expect(hung?.data).toMatchObject({ nodeRank: 1, rank: 3, gpus: 'pinned' });
  });
});
