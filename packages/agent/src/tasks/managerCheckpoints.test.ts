/** Checkpoints in the life of a task: what is sent of them, and when. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VerifierProcess } from '@muster/checkpoints/verifierProcess';
import { silentLogger } from '@muster/common/log';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { verifierProgram, type WatcherParts } from '../checkpoints/parts.ts';
import { CheckpointWatcher } from '../checkpoints/watcher.ts';
import { aDirectory, torchFile } from '../checkpoints/watcherFixture.ts';
import { exited } from '../drivers/fakeDriver.ts';
import { useGuards } from '../drivers/process/guardFixture.ts';
import { checkpointDirs } from '../launch/checkpointDir.ts';
import type { ManagerParts } from './manager.ts';
import {
  aKey,
  anAssignment,
  aTask,
  forget,
  prepare,
  start,
  stop,
  type TestAgent,
  TestNode,
} from './managerFixture.ts';

const aGuard = useGuards();

/** An agent whose tasks' checkpoints are looked at, by a verifier of its own. */
async function aWatchingAgent(node: TestNode, parts: Partial<ManagerParts> = {}): Promise<TestAgent> {
  const verifier = new VerifierProcess({
    program: verifierProgram,
    nodePath: process.execPath,
    log: silentLogger,
    isUrgent: true,
  });
  const watching: WatcherParts = {
    dirs: checkpointDirs(join(node.root, 'checkpoints')),
    verify: (order, signal) => verifier.verify(order, signal),
    metricsAt: () => ({}),
    mounts: () => [],
    nodeName: 'a',
    send: (message) => agent.receive(message),
    onProgress: () => {},
    onProblem: () => {},
    onTrainingComplete: (task) => agent.manager.reportChange(task),
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    log: silentLogger,
  };
  const checkpoints = new CheckpointWatcher(watching);
  onTestFinished(async () => {
    await checkpoints.close();
    await verifier.close();
  });
  const agent: TestAgent = await node.agent({ checkpoints, wallMs: () => Date.now(), ...parts });
  return agent;
}

describe('the end of a task is reported after its last checkpoint', () => {
  test('when it ends by itself', async () => {
    const node = new TestNode();
    const agent = await aWatchingAgent(node);
    const root = aDirectory();
    await agent.bringToRunning({ checkpoint: { dir: root } });
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    node.process.end(aKey, exited(0));
    await agent.sends('ended 0');
    expect(agent.sent.slice(-2)).toEqual(['step_10.pt verified', 'ended 0']);
  });

  test('when the agent was away at that moment', async () => {
    const node = new TestNode();
    const first = await aWatchingAgent(node);
    const root = aDirectory();
    await first.bringToRunning({ checkpoint: { dir: root } });
    await first.manager.close();
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    node.process.end(aKey, exited(0));
    const agent = await aWatchingAgent(node);
    agent.order({ ...start, assignment: anAssignment({ checkpoint: { dir: root } }) });
    await agent.sends('ended 0');
    expect(agent.sent.slice(-2)).toEqual(['step_10.pt verified', 'ended 0']);
  });

  test('when the agent that recorded the end went before it could report any of that', async () => {
    const node = new TestNode();
    const first = await aWatchingAgent(node);
    const root = aDirectory();
    await first.bringToRunning({ checkpoint: { dir: root } });
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    writeFileSync(join(root, 'training_complete.marker'), '');
    node.process.end(aKey, exited(9));
    await first.sends('ended 9');
    await first.manager.close();

    const next = await aWatchingAgent(node);
    // A Hello reports these.
    expect(next.manager.checkpoints()).toMatchObject([
      { task: aTask, checkpoint: { name: 'step_10.pt', verdict: 'verified' } },
    ]);
    expect(next.manager.reports()).toMatchObject([
      { state: 'ended', trainingComplete: true, startedAtMs: expect.any(Number) },
    ]);
  });

  test('and is known by what it printed last', async () => {
    const node = new TestNode();
    const training = {
      framework: null,
      latest: { step: 7 },
      totalSteps: null,
      etaMs: null,
      rows: 1,
      atMs: 5,
    };
    const agent = await node.agent({
      training: {
        progress: () => training,
        hang: () => null,
        finishForReport: async () => training,
        reportGoes: () => 0,
      },
    });
    await agent.bringToRunning();
    node.process.end(aKey, exited(0));
    await agent.sends('ended 0');
    expect(agent.reports.at(-1)).toMatchObject({ training, exit: { training } });
  });
});

test('a marker that the program leaves is reported while it runs, and with its end', async () => {
  const node = new TestNode();
  const agent = await aWatchingAgent(node);
  const root = aDirectory();
  await agent.bringToRunning({ checkpoint: { dir: root } });
  expect(agent.reports.at(-1)).toMatchObject({ state: 'running', trainingComplete: false });
  writeFileSync(join(root, 'training_complete.marker'), '');
  await vi.waitFor(() =>
    expect(agent.reports.at(-1)).toMatchObject({ state: 'running', trainingComplete: true }),
  );
  node.process.end(aKey, exited(1));
  await agent.sends('ended 1');
  expect(agent.reports.at(-1)).toMatchObject({ state: 'ended', trainingComplete: true });
});

test('a new connection learns of checkpoints before it learns of the end', async () => {
  const node = new TestNode();
  const agent = await aWatchingAgent(node);
  const root = aDirectory();
  const spec = { checkpoint: { dir: root } };
  await agent.bringToRunning(spec);
  writeFileSync(join(root, 'step_10.pt'), torchFile());
  node.process.end(aKey, exited(0));
  await agent.sends('ended 0');
  agent.sent.length = 0;
  agent.manager.connected();
  const order = { ...start, assignment: anAssignment(spec) };
  agent.manager.setDesired(new Map([[aKey, { task: aTask, order, lease: null }]]));
  expect(agent.sent).toEqual(['step_10.pt verified', 'ended 0']);
});

describe('the grace of a stop', () => {
  /** Saves when it is asked to stop, and then runs until it is killed. */
  const saves = `trap 'cp "$SAVED" "$MUSTER_CHECKPOINT_DIR/step_12.pt"; echo saved' TERM
    echo training; while :; do sleep 0.05; done`;

  test('ends with the checkpoint that was saved for it, as soon as the coordinator says so', async () => {
    const node = new TestNode();
    const guard = aGuard();
    const agent = await aWatchingAgent(node, { drivers: { process: guard.driver(), docker: node.docker } });
    const root = aDirectory();
    const saved = join(aDirectory(), 'saved');
    writeFileSync(saved, torchFile());
    await agent.bringToRunning({
      command: ['/bin/sh', '-c', saves],
      env: { SAVED: saved },
      checkpoint: { dir: root },
    });
    const output = join(node.root, 'tasks', aKey, 'output.log');
    await vi.waitFor(() => expect(readFileSync(output, 'utf8')).toContain('training'));
    agent.order({ ...stop, graceMs: 3_600_000 });
    await agent.sends('step_12.pt verified after the stop');
    agent.order({ ...stop, graceMs: 0 });
    await agent.sends('ended SIGKILL');
    expect(readFileSync(output, 'utf8')).toContain('saved');
    expect(agent.sent.filter((messages) => messages.startsWith('step'))).toEqual([
      'step_12.pt verified after the stop',
    ]);
  });

  test('is cut short by a later word, and never made longer', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    await agent.bringToRunning();
    const letStop = node.process.hold('stop');
    agent.order({ ...stop, graceMs: 60_000 });
    await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(`stop ${aKey} SIGTERM 60000`));
    agent.order({ ...stop, graceMs: 90_000 });
    agent.order({ ...stop, graceMs: 60_000 });
    agent.order({ ...stop, graceMs: 20 });
    await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(`stop ${aKey} SIGKILL 0`));
    expect(node.process.calls.filter((call) => call.startsWith('stop'))).toHaveLength(2);
    letStop();
    await agent.sends('ended SIGTERM');
  });

  test('begins when what was there before is known', async () => {
    const node = new TestNode();
    const noted = Promise.withResolvers<void>();
    const asked: string[] = [];
    const agent = await node.agent({
      checkpoints: {
        ...node.noCheckpoints,
        isWatched: () => true,
        stopping: async () => {
          asked.push('stopping');
          await noted.promise;
        },
      },
    });
    await agent.bringToRunning();
    agent.order(stop);
    await vi.waitFor(() => expect(asked).toEqual(['stopping']));
    expect(node.process.calls.filter((call) => call.startsWith('stop'))).toEqual([]);
    noted.resolve();
    await agent.sends('ended SIGTERM');
  });

  test('begins anew when its signal may not have come', async () => {
    const node = new TestNode();
    const asked: string[] = [];
    const agent = await node.agent({
      checkpoints: {
        ...node.noCheckpoints,
        isWatched: () => true,
        stopping: async () => void asked.push('stopping'),
        notStopped: () => void asked.push('not stopped'),
      },
    });
    await agent.bringToRunning();
    node.process.fail('stop', 'before');
    agent.order(stop);
    await vi.waitFor(() => expect(asked.slice(0, 3)).toEqual(['stopping', 'not stopped', 'stopping']));
    node.process.mend('stop');
    await agent.sends('ended SIGTERM');
    expect(asked.at(-1)).toBe('stopping');
  });
});

describe('what an attempt begins from', () => {
  const resume = { name: 'step_10.pt', step: 10 };

  test('is in its environment and its command', async () => {
    const node = new TestNode();
    const agent = await aWatchingAgent(node);
    const root = aDirectory();
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    const { assignment } = prepare({
      command: ['train', '{resume:--resume=}', '--bs={bs}'],
      params: { bs: 8 },
      checkpoint: { dir: root },
    });
    agent.order({ kind: 'prepare', assignment: { ...assignment, resume, batchScale: 0.5 } });
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'));
    agent.order(start);
    await vi.waitFor(() => expect(agent.sent).toContain('running'));
    expect(node.process.launches).toMatchObject([
      {
        command: ['train', `--resume=${root}/step_10.pt`, '--bs=4'],
        env: {
          MUSTER_RESUME_FROM: `${root}/step_10.pt`,
          MUSTER_RESUME_STEP: '10',
          MUSTER_BATCH_SCALE: '0.5',
          MUSTER_LR_SCALE: '1',
        },
      },
    ]);
  });

  test('has to be there, or it does not begin', async () => {
    const node = new TestNode();
    const agent = await aWatchingAgent(node);
    const { assignment } = prepare({ checkpoint: { dir: aDirectory() } });
    agent.order({ kind: 'prepare', assignment: { ...assignment, resume } });
    await agent.sends('ended corrupt_checkpoint');
    expect(node.process.launches).toEqual([]);
  });

  test('lies where the job that was requeued has saved it', async () => {
    const node = new TestNode();
    const agent = await aWatchingAgent(node);
    const before = 'job_zzzzzzzzzzzz' as typeof aTask.jobId;
    const root = join(node.root, 'checkpoints', before);
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, 'step_10.pt'), torchFile());
    const { assignment } = prepare();
    agent.order({ kind: 'prepare', assignment: { ...assignment, resume, checkpointJobId: before } });
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'));
    agent.order(start);
    await vi.waitFor(() => expect(node.process.launches).toHaveLength(1));
    expect(node.process.launches[0]?.env).toMatchObject({
      MUSTER_CHECKPOINT_DIR: root,
      MUSTER_RESUME_FROM: join(root, 'step_10.pt'),
    });
    expect(assignment.spec.checkpoint.dir).toBeNull();
    node.process.end(aKey, exited(0));
    await agent.sends('ended 0');
    agent.order(forget);
  });
});
