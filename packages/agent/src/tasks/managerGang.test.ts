/** Before the release of a gang: preparing the task, reporting why that fails, and testing the paths. */
import { bareGpu, emptyInventory } from '@muster/common/hardware';
import type { TaskRef } from '@muster/common/ids';
import { describe, expect, test, vi } from 'vitest';
import { gpuProblem } from './gpuProblem.ts';
import {
  aKey,
  anAssignment,
  aTask,
  checkRound,
  forget,
  prepare,
  prepareGang,
  start,
  stop,
  type TestAgent,
  TestNode,
} from './managerFixture.ts';

async function preparedGang(node = new TestNode()): Promise<{ node: TestNode; agent: TestAgent }> {
  const agent = await node.agent();
  agent.order(prepareGang());
  await agent.sends('prepared 10.0.0.7:4000');
  return { node, agent };
}

describe('a node that prepares a task', () => {
  test('reports what it is busy with until the task is prepared', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    const letPrepare = node.process.hold('prepare');
    agent.order(prepareGang());
    await vi.waitFor(() => expect(agent.manager.reports()).toMatchObject([{ doing: `prepares ${aKey}` }]));
    expect(agent.knows()).toEqual(['assigned']);
    expect(node.heldPorts.size).toBe(0);
    letPrepare();
    await agent.sends('prepared 10.0.0.7:4000');
    expect(agent.manager.reports()).toMatchObject([{ state: 'prepared', doing: null }]);
    expect(node.heldPorts.size).toBe(1);
  });

  test.each([
    ['stop', stop],
    ['forget', forget],
  ] as const)('gives it up at the order to %s, and holds nothing', async (_, order) => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.hold('prepare');
    agent.order(prepareGang());
    await vi.waitFor(() => expect(node.process.calls).toContain(`prepare ${aKey}`));
    agent.order(order);
    if (order === stop) await agent.sends('ended nothing ran');
    agent.order(forget);
    await vi.waitFor(() => expect([agent.knows(), node.hasRecord()]).toEqual([[], false]));
    expect([node.heldPorts.size, agent.warnings]).toEqual([0, []]);
  });

  test('repeats what may pass, and reports that to the coordinator', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    node.process.fail('prepare', 'before');
    agent.order(prepareGang());
    await vi.waitFor(() =>
      expect(agent.manager.reports()).toMatchObject([{ doing: 'retrying: the fake process is away' }]),
    );
    node.process.mend('prepare');
    await agent.sends('prepared 10.0.0.7:4000');
  });

  test('waits until an earlier task of its GPU has ended: to the coordinator a fenced one is over, here it may be frozen', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    const withGpu = (task: TaskRef) =>
      ({ kind: 'prepare', assignment: { ...anAssignment({}, task), gpuUuids: ['GPU-1'] } }) as const;
    const prepares = () => agent.sent.filter((messages) => messages.startsWith('prepared')).length;
    agent.order(withGpu(aTask));
    await vi.waitFor(() => expect(prepares()).toBe(1));
    agent.order(start);
    await agent.sends('running');
    const other = { ...aTask, attempt: 2 };
    agent.order(withGpu(other), other);
    const isWaiting = `retrying: GPU still held by ${aKey}, which must end first`;
    await vi.waitFor(() => expect(agent.manager.reports().at(-1)).toMatchObject({ doing: isWaiting }));
    expect(prepares()).toBe(1);
    agent.order(forget);
    await vi.waitFor(() => expect(prepares()).toBe(2));
  });
});

describe('a torchrun that is being stopped', () => {
  test.each([
    [
      'is killed once it is alone: what it waits for is not worth its grace',
      ['torchrun', 'train.py'],
      [7],
      true,
    ],
    ['has its grace for as long as a worker saves', ['torchrun', 'train.py'], [7, 8], false],
    ['in a script has its grace', 'torchrun train.py; ./after', [7], false],
  ])('%s', async (_, command, processes, isKilled) => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare({ command }));
    await vi.waitFor(() => expect(agent.knows()).toEqual(['prepared']));
    agent.order(start);
    await agent.sends('running');
    let looks = 0;
    node.process.seeProcesses(() => {
      looks += 1;
      return processes;
    });
    const letStop = node.process.hold('stop');
    agent.order(stop);
    const kill = `stop ${aKey} SIGKILL 0`;
    const looksEnough = () => expect(looks).toBeGreaterThanOrEqual(3);
    if (isKilled) await vi.waitFor(() => expect(node.process.calls.at(-1)).toBe(kill));
    else if (Array.isArray(command)) await vi.waitFor(looksEnough);
    expect(node.process.calls.includes(kill)).toBe(isKilled);
    letStop();
    await agent.sends('ended SIGTERM');
  });
});

describe('a node that cannot prepare the task reports that as its end', () => {
  const startError = (agent: TestAgent) => agent.reports.at(-1)?.exit?.startError;

  test('because the driver cannot prepare it', async () => {
    const node = new TestNode();
    const agent = await node.agent();
    agent.order(prepare({ env: { FAKE_PREPARE_ERROR: 'image_pull' } }));
    await agent.sends('ended image_pull');
    expect(startError(agent)).toEqual({
      kind: 'image_pull',
      message: 'it could not be prepared',
      node: 'a',
      nodeRank: 0,
      blame: 'platform',
      evidence: null,
    });
    expect(node.process.calls).not.toContain(`start ${aKey}`);
    const next = await node.restart(agent);
    expect(next.knows()).toEqual(['ended image_pull']);
  });

  test('because of a GPU', async () => {
    const node = new TestNode();
    const inventory = { ...emptyInventory, gpus: [bareGpu('GPU-1')] };
    const agent = await node.agent({
      gpuProblem: async (gpuUuids) => gpuProblem(gpuUuids, { inventory, conditions: [] }),
    });
    agent.order({ kind: 'prepare', assignment: { ...anAssignment(), gpuUuids: ['GPU-1', 'GPU-2'] } });
    await agent.sends('ended gpu_fault');
    expect(startError(agent)).toMatchObject({ message: 'GPU GPU-2 is no longer present', node: 'a' });
    expect(node.process.calls).not.toContain(`prepare ${aKey}`);
  });

  test('because no port is free', async () => {
    const node = new TestNode();
    const hold = () => Promise.reject(new Error('the last 1000 were all taken'));
    const agent = await node.agent({ rendezvous: { ...node.rendezvous, hold } });
    agent.order(prepareGang());
    await agent.sends('ended rendezvous');
    expect(startError(agent)?.message).toBe('no free port: the last 1000 were all taken');
  });

  test('because the others of the gang could not reach it; alone it needs nobody to', async () => {
    const node = new TestNode();
    const endpointProblem = () => 'a has no address in the network 10.9.0.0/16';
    const agent = await node.agent({ rendezvous: { ...node.rendezvous, endpointProblem } });
    agent.order(prepareGang());
    await agent.sends('ended rendezvous');
    expect(startError(agent)?.message).toBe('a has no address in the network 10.9.0.0/16');
    const alone = { ...aTask, attempt: 2 };
    agent.order(prepare({}, alone), alone);
    await agent.sends('prepared 10.0.0.7:4000');
  });

  test('but not for want of an interface that has come up since the node was last looked at', async () => {
    const node = new TestNode();
    let isUp = false;
    const agent = await node.agent({
      readNetwork: async () => void (isUp = true),
      rendezvous: { ...node.rendezvous, endpointProblem: () => (isUp ? null : 'a has no address') },
    });
    agent.order(prepareGang());
    await agent.sends('prepared 10.0.0.7:4000');
  });
});

describe('paths', () => {
  test('are tested while the port is held, reported once for each order, and not tested again', async () => {
    const { node, agent } = await preparedGang();
    agent.order(checkRound(1));
    await agent.sends('checked 1');
    expect(node.checks).toEqual(['round 1, holding 4000']);
    agent.order(checkRound(1));
    agent.manager.connected();
    agent.order({ ...checkRound(1), assignment: prepareGang().assignment });
    const reported = ['checked 1', 'checked 1', 'checked 1'];
    await vi.waitFor(() => expect(agent.sent).toEqual(['prepared 10.0.0.7:4000', ...reported]));
    expect(node.checks).toHaveLength(1);
    agent.order(start);
    await agent.sends('running');
    expect(node.heldPorts.size).toBe(0);
  });

  test('of another round are tested again, and what was under way is not reported', async () => {
    const { node, agent } = await preparedGang();
    node.pathsKnown = new Promise(() => {});
    agent.order(checkRound(1));
    await vi.waitFor(() => expect(node.checks).toHaveLength(1));
    node.pathsKnown = Promise.resolve();
    agent.order(checkRound(2));
    await agent.sends('checked 2');
    // Late, and repeated.
    agent.order(checkRound(1));
    agent.order(checkRound(2));
    await vi.waitFor(() => expect(agent.sent).toEqual(['prepared 10.0.0.7:4000', 'checked 2', 'checked 2']));
    expect(node.checks).toHaveLength(2);
    expect(agent.warnings).toEqual([]);
  });

  test.each([
    ['stop', stop, 'ended nothing ran'],
    ['start', start, 'running'],
  ] as const)('are given up at the order to %s', async (_, order, messages) => {
    const { node, agent } = await preparedGang();
    node.pathsKnown = new Promise(() => {});
    agent.order(checkRound(1));
    await vi.waitFor(() => expect(node.checks).toHaveLength(1));
    agent.order(order);
    await agent.sends(messages);
    expect(agent.sent).not.toContain('checked 1');
  });

  test('of a task that is not known here are not tested', async () => {
    const agent = await new TestNode().agent();
    agent.order(checkRound(1));
    expect(agent.knows()).toEqual([]);
  });

  test.each(['before', 'during', 'after'])(
    'with an agent that was replaced %s the check: it reports its own port first',
    async (when) => {
      const { node, agent } = await preparedGang();
      if (when === 'during') node.pathsKnown = new Promise(() => {});
      if (when !== 'before') {
        agent.order(checkRound(1));
        await vi.waitFor(() => expect(node.checks).toHaveLength(1));
      }
      if (when === 'after') await agent.sends('checked 1');
      const next = await node.restart(agent);
      node.pathsKnown = Promise.resolve();
      next.order({ ...checkRound(1), assignment: prepareGang().assignment });
      await next.sends('checked 1');
      expect(next.sent).toEqual(['prepared 10.0.0.7:4001', 'checked 1']);
      expect(node.checks.at(-1)).toBe('round 1, holding 4001');
    },
  );
});

test('a release to an agent that was replaced after the check starts the task', async () => {
  const { node, agent } = await preparedGang();
  agent.order(checkRound(1));
  await agent.sends('checked 1');
  const next = await node.restart(agent);
  next.order({ ...start, assignment: prepareGang().assignment });
  await next.sends('running');
  expect(node.process.launches).toHaveLength(1);
});
