import { expect, test } from 'vitest';
import { drainNode, undrainNode } from '../commands/drains.ts';
import { nodeStatus } from '../commands/nodes.ts';
import { startTestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aJob, aNode, anAttempt, aSpec, aTask, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { Drains, stopMarginMs } from './drains.ts';

const graceMs = 30_000;
const leadMs = graceMs + stopMarginMs;

/** A gang on both nodes, not preemptible, and a job of one task on the second, with a longer grace. */
async function twoJobs() {
  const memory = new Memory('test');
  for (const name of ['node-1', 'node-2']) memory.nodes.set(name, aNode(name));
  const add = (number: number, ranks: readonly number[], stopGrace: string) => {
    const tasks = ranks.map((rank, nodeRank) =>
      aTask(nodeRank, { node: nodeNameOf(`node-${rank + 1}`), state: 'running' }),
    );
    const attempt = anAttempt(1, { state: 'running', tasks });
    const spec = aSpec({ stop_grace: stopGrace, preemptible: false });
    memory.jobs.set(
      jobIdOf(number),
      aJob(number, { spec, lastAttempt: 1, state: { kind: 'running', attempt } }),
    );
    memory.attempts.set(jobIdOf(number), new Map([[1, attempt]]));
  };
  add(1, [0, 1], '30s');
  add(2, [1], '60s');
  const { clock, state, loop, close } = await startTestCoordinator({ memory });
  let wallOffsetMs = 0;
  const wallMs = () => clock.wallMs() + wallOffsetMs;
  const drains = new Drains({ wallMs, monotonicMs: () => clock.monotonicMs() });
  return {
    clock,
    close,
    setWallClock(offsetMs: number) {
      wallOffsetMs = offsetMs;
    },
    drain: (deadlineMs: number | null, node = 'node-1') =>
      loop.run(aCaller, (draft, nowMs) =>
        drainNode(draft, { node: nodeNameOf(node), reason: 'kernel update', deadlineMs }, nowMs),
      ),
    /** Its agent's word. */
    leave: (leavingInMs: number) =>
      loop.run(aCaller, (draft, nowMs) =>
        nodeStatus(
          draft,
          { name: nodeNameOf('node-1'), inventory: null, conditions: [], leavingInMs },
          nowMs,
        ),
      ),
    undrain: () => loop.run(aCaller, (draft, nowMs) => undrainNode(draft, nodeNameOf('node-1'), nowMs)),
    job: (number: number) => state.jobs.get(jobIdOf(number)),
    /** States of both jobs after a pass. */
    async pass() {
      await Promise.all(drains.run(state, loop));
      return [1, 2].map((number) => state.jobs.get(jobIdOf(number))?.state.kind);
    },
  };
}

test('what runs there is preempted just early enough to save, whatever its owner allows', async () => {
  const { drain, pass, clock, job, close } = await twoJobs();
  await drain(leadMs + 10_000);
  expect(await pass()).toEqual(['running', 'running']);
  clock.nowMs += 9_999;
  expect(await pass()).toEqual(['running', 'running']);
  clock.nowMs += 1;
  expect(await pass()).toEqual(['stopping', 'running']);
  expect(await pass(), 'and once').toEqual(['stopping', 'running']);
  expect(job(1)?.state).toMatchObject({
    outcome: {
      next: 'queued',
      charge: 'preemption',
      cause: { kind: 'preempted', message: 'node-1 is being drained: kernel update' },
    },
  });
  await close();
});

test('a longer grace begins earlier', async () => {
  const { drain, pass, close } = await twoJobs();
  await drain(60_000, 'node-2');
  expect(await pass()).toEqual(['running', 'stopping']);
  await close();
});

test('a deadline of nothing is now', async () => {
  const { drain, pass, close } = await twoJobs();
  await drain(0);
  expect(await pass()).toEqual(['stopping', 'running']);
  await close();
});

test('a machine that says itself that it is switched off is left at once', async () => {
  const { leave, pass, close } = await twoJobs();
  await leave(600_000);
  expect(await pass()).toEqual(['stopping', 'running']);
  await close();
});

test('without a deadline everything may take its time', async () => {
  const { drain, pass, clock, close } = await twoJobs();
  await drain(null);
  clock.nowMs += 7 * 86_400_000;
  expect(await pass()).toEqual(['running', 'running']);
  await close();
});

test('a wall clock that is set neither hurries nor delays it', async () => {
  const { drain, pass, clock, setWallClock, close } = await twoJobs();
  await drain(leadMs + 10_000);
  await pass();
  setWallClock(86_400_000);
  clock.nowMs += 9_999;
  expect(await pass()).toEqual(['running', 'running']);
  setWallClock(-86_400_000);
  clock.nowMs += 1;
  expect(await pass()).toEqual(['stopping', 'running']);
  await close();
});

test('a deadline that was put off, or taken back, does not count', async () => {
  const { drain, undrain, pass, clock, close } = await twoJobs();
  await drain(leadMs + 1_000);
  await pass();
  await drain(leadMs + 60_000);
  clock.nowMs += 5_000;
  expect(await pass()).toEqual(['running', 'running']);
  await undrain();
  clock.nowMs += 600_000;
  expect(await pass()).toEqual(['running', 'running']);
  await close();
});
