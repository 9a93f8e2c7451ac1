import { writeFileSync } from 'node:fs';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { emptySample } from '../gpus/gpuSource.ts';
import { anAssignment, aTask } from '../tasks/managerFixture.ts';
import { OutputFollower } from './outputFollower.ts';
import { Node, step, steps } from './taskTrainingFixture.ts';

const mib = 1024 * 1024;
const otherTask: TaskRef = { jobId: 'job_0123456789ac' as JobId, attempt: 1, nodeRank: 0 };

describe('progress', () => {
  test('is read from output as it grows', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    expect(agent.progress(aTask)).toBeNull();
    node.write(`max_iters = 1000\n${step(0, 4)}${step(10, 3).slice(0, 9)}`);
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(1));
    node.nowMs += 10_000;
    node.write(step(10, 3).slice(9));
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(2));
    expect(agent.progress(aTask)).toMatchObject({
      framework: 'nanogpt',
      latest: { step: 10, train_loss: 3 },
      totalSteps: 1_000,
      atMs: 1_010_000,
    });
    expect(agent.metricsAt(aTask, 5)).toMatchObject({ step: 0, train_loss: 4 });
    expect(agent.metricsAt(otherTask, 5)).toEqual({});
  });

  test('takes a bounded time of each look, however slow the lines are to read', async () => {
    const node = new Node();
    const rows = [0];
    const agent = await node.agent();
    node.tickMs = 60;
    node.onLook = () => rows.push(agent.progress(aTask)?.rows ?? 0);
    node.write(steps(0, 20_000));
    node.run();
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(20_000));
    const atOnce = rows.slice(1).map((each, look) => each - (rows[look] ?? 0));
    // A slice has some 1,500 lines, and a look would have sixteen of them.
    expect(Math.max(...atOnce)).toBeLessThan(5_000);
  });

  test('is complete when a task has ended: the rest is read first, an unfinished line too', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    await vi.waitFor(() => expect(agent.progress(aTask)).toBeNull());
    node.write(steps(0, 50_000) + step(50_000, 1).trimEnd());
    node.running.pop();
    expect(await agent.finish(aTask)).toMatchObject({
      rows: 50_001,
      latest: { step: 50_000, train_loss: 1 },
    });
    // Asked again, as after a report that was not delivered.
    expect(await agent.finish(aTask)).toMatchObject({ rows: 50_001 });
    expect(agent.progress(aTask)).toMatchObject({ rows: 50_001 });
  });

  test('of a task that this agent never saw running is read all the same', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write(steps(0, 10));
    expect(await agent.finish(aTask)).toMatchObject({ rows: 10 });
    expect(await agent.finish(otherTask)).toBeNull();
  });

  test('of a task that printed nothing is none, and that is known without waiting for any file', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write('');
    const later = new Promise((resolve) => setImmediate(resolve, 'later'));
    expect(await Promise.race([agent.finish(aTask), later])).toBeNull();
    expect(await Promise.race([agent.finish(otherTask), later])).toBeNull();
    expect(node.ended).toHaveLength(2);
  });

  test('says where its rows end in the report, or that they end behind the last one when the report goes before', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write(steps(0, 10));
    node.write('saving\n');
    node.write(steps(0, 200_000), otherTask);
    void agent.finishForReport(otherTask);
    expect(agent.reportGoes(otherTask)).toBeNull();
    await agent.finishForReport(aTask);
    expect(agent.reportGoes(aTask)).toBe(steps(0, 10).trimEnd().length);
    await agent.finish(otherTask);
    expect(node.ended).toEqual([
      { task: taskKey(aTask), isReported: true, isLost: false },
      { task: taskKey(otherTask), isReported: false, isLost: false },
    ]);
    // What an agent before this one has reported, this one does not know.
    const next = await node.agent();
    await next.finish(aTask);
    expect(node.ended.at(-1)).toEqual({ task: taskKey(aTask), isReported: false, isLost: false });
    expect(next.reportGoes({ ...aTask, attempt: 7 })).toBeNull();
  });

  test('that cannot be read to its end is said to be lost, and has no known end', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write(steps(0, 10));
    const read = vi.spyOn(OutputFollower.prototype, 'readSlice').mockRejectedValue(new Error('EIO'));
    onTestFinished(() => read.mockRestore());
    await agent.finishForReport(aTask);
    expect(agent.reportGoes(aTask)).toBeNull();
    expect(node.ended).toEqual([{ task: taskKey(aTask), isReported: false, isLost: true }]);
  });

  test('of a task that ended before it was looked at, what was offered to it is known', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.assigned.set(taskKey(aTask), {
      ...anAssignment({}, aTask),
      resume: { name: 'step-10', step: 10 },
    });
    node.write(steps(11, 20));
    await agent.finish(aTask);
    expect(node.sent.map(({ sign }) => [sign.kind, sign.step])).toEqual([['resume_confirmed', 11]]);
  });

  test('is forgotten with its task, and a task that is forgotten meanwhile keeps nobody waiting', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    node.write(steps(0, 200_000));
    await vi.waitFor(() => expect(agent.progress(aTask)).not.toBeNull());
    node.running.pop();
    const end = agent.finish(aTask);
    agent.forget(aTask);
    await end;
    expect(agent.progress(aTask)).toBeNull();
  });

  test('closing keeps nobody waiting', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write(steps(0, 200_000));
    const end = agent.finish(aTask);
    agent.close();
    await end;
    expect(await agent.finish(otherTask)).toBeNull();
  });
});

describe('bad output', () => {
  test('lines of 50 MB, carriage returns and bytes that are no text cost nothing of what is around them', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    node.write(step(0));
    node.write(Buffer.alloc(50 * mib, 'x'));
    node.write('\n');
    node.write(step(1).trimEnd().concat('\r').repeat(1_000));
    const garbage = Buffer.from(Array.from({ length: 3 * mib }, (_, index) => (index * 7_919) % 251));
    node.write(garbage);
    node.write(`\n${step(2, 1)}`);
    node.running.pop();
    expect(await agent.finish(aTask)).toMatchObject({ rows: 1_002, latest: { step: 2, train_loss: 1 } });
    expect(node.warnings).toEqual([]);
  });

  test('however much there is, everybody else has a turn after each slice', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.write(Buffer.alloc(10 * mib, step(7)));
    let turns = 0;
    let isReading = true;
    const count = () => {
      turns += 1;
      if (isReading) setImmediate(count);
    };
    setImmediate(count);
    await agent.finish(aTask);
    isReading = false;
    expect(turns).toBeGreaterThanOrEqual((10 * mib) / (64 * 1024));
  });

  test('a task that writes faster than it can be read is skipped ahead, and that is reported', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    node.write(step(0) + 'x'.repeat(99).concat('\n').repeat(700_000));
    await vi.waitFor(() => expect(node.warnings).toHaveLength(1));
    expect(node.unread.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(1_000_000);
    node.write(step(1) + step(2, 'nan'));
    await vi.waitFor(() => expect(agent.progress(aTask)?.latest.step).toBe(2));
    expect(node.warnings).toEqual([expect.stringContaining('lines of them are missing')]);
    // Which line it is nobody knows any longer.
    expect(node.sent.map(({ sign }) => [sign.kind, sign.step, sign.line])).toEqual([['nan_loss', 2, 0]]);
  });

  test.each(['runs', 'has ended'])(
    'a flood of one task that %s keeps no other one waiting for its end',
    async (state) => {
      const node = new Node();
      const agent = await node.agent();
      node.write(Buffer.alloc(8 * mib, step(7)));
      let isRead = false;
      if (state === 'runs') node.run();
      else void agent.finish(aTask).then(() => (isRead = true));
      await vi.waitFor(() => expect(agent.progress(aTask)).not.toBeNull());
      node.write(steps(0, 3), otherTask);
      expect(await agent.finish(otherTask)).toMatchObject({ rows: 3 });
      expect(isRead).toBe(false);
      await agent.finish(aTask);
    },
  );

  test('a task that writes its output anew is followed as one that has just begun', async () => {
    const node = new Node();
    node.run();
    node.write(steps(0, 1_000));
    const agent = await node.agent();
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(1_000));
    writeFileSync(node.path(aTask), steps(0, 2));
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(1_002));
    const positions = node.rows.map(({ position }) => position);
    expect(node.rows.slice(-2).map(({ values }) => values.step)).toEqual([0, 1]);
    expect(positions, 'they go on growing').toEqual(positions.toSorted((a, b) => a - b));
    expect(new Set(positions).size).toBe(1_002);
  });
});

describe('signs', () => {
  const bad = steps(0, 20) + step(20, 'nan') + step(21, 'nan');

  test('are reported as they are read, and again on a new connection', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    node.write(bad);
    await vi.waitFor(() => expect(node.sent).toHaveLength(1));
    expect(node.sent[0]).toMatchObject({
      kind: 'trainingSign',
      task: aTask,
      sign: { kind: 'nan_loss', step: 20, lastGoodStep: 19, line: 21 },
    });
    agent.resend();
    expect(node.sent[1]).toEqual(node.sent[0]);
  });

  test('of what was printed before this agent was are the same as they were', async () => {
    const node = new Node();
    node.run();
    node.write(bad);
    const first = await node.agent();
    await vi.waitFor(() => expect(node.sent).toHaveLength(1));
    first.close();
    await node.agent();
    await vi.waitFor(() => expect(node.sent).toHaveLength(2));
    expect(node.sent[1]).toEqual(node.sent[0]);
  });

  test('an output that begins anew has line numbers of its own', async () => {
    const node = new Node();
    const agent = await node.agent();
    node.run();
    node.write(steps(0, 50));
    await vi.waitFor(() => expect(agent.progress(aTask)?.rows).toBe(50));
    writeFileSync(node.path(aTask), steps(50, 60) + step(60, 'nan'));
    await vi.waitFor(() => expect(node.sent).toHaveLength(1));
    expect(node.sent[0]?.sign.line).toBe(11);
  });
});

describe('a hang', () => {
  const hang = { action: 'warn', times: 3, at_least: '30s' };

  /** A task that has made some steps, one in five seconds. */
  async function training(gpuUuids = ['GPU-1']) {
    const node = new Node();
    const agent = await node.agent();
    node.run(aTask, { on_hang: hang }, gpuUuids);
    const observe = (utilization: number, powerWatts: number) => {
      const samples = new Map(
        gpuUuids.map((uuid) => [uuid, { ...emptySample(uuid), utilization, powerWatts }]),
      );
      agent.observe({ samples, holders: new Map(gpuUuids.map((uuid) => [uuid, aTask])) });
    };
    for (let number = 0; number < 12; number += 1) {
      node.nowMs += 5_000;
      observe(98, 600);
      node.write(step(number));
      await vi.waitFor(() => expect(agent.progress(aTask)?.latest.step).toBe(number));
    }
    /** Silent, while its GPU shows this. */
    const quiet = async (seconds: number, utilization: number, powerWatts: number) => {
      for (let passed = 0; passed < seconds; passed += 5) {
        node.nowMs += 5_000;
        observe(utilization, powerWatts);
        await node.looked();
      }
    };
    return { node, agent, quiet };
  }

  test('is derived from output, GPUs and the limits of the job', async () => {
    const { agent, quiet, node } = await training();
    await quiet(30, 100, 120);
    expect(agent.hang(aTask)).toBeNull();
    await quiet(5, 100, 120);
    expect(agent.hang(aTask)).toEqual({ quietForMs: 35_000, usualMs: 5_000, gpus: 'pinned', rank: null });
    expect(agent.hang(otherTask)).toBeNull();
    node.write('still here\n');
    await vi.waitFor(() => expect(agent.hang(aTask)).toBeNull());
  });

  test('is over with a new checkpoint, and with the task', async () => {
    const { agent, quiet } = await training();
    await quiet(35, 0, 70);
    expect(agent.hang(aTask)).toMatchObject({ gpus: 'idle' });
    agent.checkpointSeen(aTask);
    expect(agent.hang(aTask)).toBeNull();
    // Half a minute between two signs of progress is what is usual now.
    await quiet(100, 0, 70);
    expect(agent.hang(aTask)).toBeNull();
    await quiet(10, 0, 70);
    expect(agent.hang(aTask)).not.toBeNull();
    const end = agent.finish(aTask);
    expect(agent.hang(aTask)).toBeNull();
    await end;
    expect(agent.hang(aTask)).toBeNull();
  });

  test('is none while the agent keeps the task frozen, or while its GPU computes', async () => {
    const { agent, node, quiet } = await training();
    node.frozen = true;
    await quiet(60, 100, 120);
    node.frozen = false;
    expect(agent.hang(aTask)).toBeNull();
    await quiet(60, 98, 600);
    expect(agent.hang(aTask)).toBeNull();
  });

  test('is none of a task without GPUs', async () => {
    const { agent, quiet } = await training([]);
    await quiet(60, 0, 0);
    expect(agent.hang(aTask)).toBeNull();
  });
});
