import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { heartbeatIntervalMs, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { fenceCommandRunner } from '../leases/fenceCommand.ts';
import {
  aCaller,
  aJob,
  aNode,
  anAttempt,
  anInventory,
  aSpec,
  aTask,
  jobIdOf,
  nodeNameOf,
} from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { FenceHook } from './fenceHook.ts';

const node = nodeNameOf('node-1');
const { signal } = new AbortController();

let coordinator: TestCoordinator;
beforeEach(async () => {
  const memory = new Memory('test');
  const inventory = anInventory({ addresses: ['10.0.0.1', 'fd00::1'] });
  memory.nodes.set(node, aNode(node, { inventory }));
  const attempt = anAttempt(1, { state: 'running', tasks: [aTask(0, { state: 'running' })], leaseMs: null });
  const spec = aSpec({ retry: { max_attempts: 3, on: ['node_lost'] } });
  memory.jobs.set(jobIdOf(1), aJob(1, { spec, lastAttempt: 1, state: { kind: 'running', attempt } }));
  memory.attempts.set(jobIdOf(1), new Map([[1, attempt]]));
  coordinator = await startTestCoordinator({ memory });
  coordinator.agents.expect(node);
});
afterEach(() => coordinator.close());

/** A hook whose commands end when the test ends them. */
function aHook(paused: () => string | null = () => null) {
  const { state, loop, agents, clock } = coordinator;
  const runs: {
    readonly node: string;
    readonly addresses: readonly string[];
    end(exitCode: number): void;
  }[] = [];
  const hook = new FenceHook({
    state,
    loop,
    agents,
    log: silentLogger,
    paused,
    monotonicMs: () => clock.nowMs,
    runCommand: (name, addresses) =>
      new Promise((resolve) => {
        runs.push({ node: name, addresses, end: (exitCode) => resolve({ exitCode, output: '' }) });
      }),
  });
  return { hook, runs };
}

/** And so for long enough that others would be, too, were it us. */
function fallSilent(): void {
  coordinator.clock.nowMs += 10_000;
  coordinator.agents.takeNewlySilent();
  coordinator.clock.nowMs += 2 * heartbeatIntervalMs;
}

const jobState = () => coordinator.state.jobs.get(jobIdOf(1))?.state.kind;
const confirmed = () =>
  [...coordinator.memory.events.values()].filter(({ kind }) => kind === 'node.confirmed_dead');

test('it runs once for a node with running tasks that has fallen silent, and its success is proof of death', async () => {
  const { hook, runs } = aHook();
  hook.run();
  expect(runs).toEqual([]);
  fallSilent();
  hook.run();
  hook.run();
  expect(runs).toMatchObject([{ node, addresses: ['10.0.0.1', 'fd00::1'] }]);
  runs[0]?.end(0);
  await vi.waitFor(() => expect(jobState()).toBe('queued'));
  expect(confirmed()).toMatchObject([{ subject: node, data: { by: 'fence command' } }]);
  coordinator.clock.nowMs += 60_000;
  hook.run();
  expect(runs, 'there is nothing left to run it for').toHaveLength(1);
});

test('its failure proves nothing, and it is tried again, later each time', async () => {
  const { hook, runs } = aHook();
  fallSilent();
  for (const [failures, waitMs] of [1_000, 2_000, 4_000].entries()) {
    hook.run();
    expect(runs).toHaveLength(failures + 1);
    runs[failures]?.end(1);
    await new Promise((resolve) => setImmediate(resolve));
    coordinator.clock.nowMs += waitMs - 1;
    hook.run();
    expect(runs).toHaveLength(failures + 1);
    coordinator.clock.nowMs += 1;
  }
  expect(jobState()).toBe('running');
  expect(confirmed()).toEqual([]);
});

test('one that cannot be run is tried again, and ends nothing here', async () => {
  const { state, loop, agents, clock } = coordinator;
  let runs = 0;
  const runCommand = () => {
    runs += 1;
    return Promise.reject(new Error('spawn ENOMEM'));
  };
  const common = { state, loop, agents, log: silentLogger, paused: () => null };
  const hook = new FenceHook({ ...common, monotonicMs: () => clock.nowMs, runCommand });
  fallSilent();
  hook.run();
  await new Promise((resolve) => setImmediate(resolve));
  hook.run();
  expect(runs, 'not at once').toBe(1);
  clock.nowMs += 1_000;
  hook.run();
  expect(runs).toBe(2);
  await hook.close();
  expect(jobState()).toBe('running');
});

test.each([
  ['answers', false],
  ['has been back and is silent again', true],
])('what it proved of an earlier silence says nothing of a node that %s', async (_, silentAgain) => {
  const { hook, runs } = aHook();
  fallSilent();
  hook.run();
  coordinator.agents.admit({ name: node, instanceId: 'i', bootId: 'boot', origin: null });
  if (silentAgain) fallSilent();
  hook.run();
  expect(runs, 'one at a time').toHaveLength(1);
  runs[0]?.end(0);
  if (silentAgain) {
    // Only once the first one has been dealt with.
    await vi.waitFor(() => {
      hook.run();
      expect(runs).toHaveLength(2);
    });
  } else {
    await new Promise((resolve) => setImmediate(resolve));
    await coordinator.loop.run(aCaller, () => {});
    hook.run();
    expect(runs).toHaveLength(1);
  }
  expect(jobState()).toBe('running');
  expect(confirmed()).toEqual([]);
});

test('it waits until the other nodes of a cut would be silent, too', () => {
  const { hook, runs } = aHook();
  fallSilent();
  coordinator.clock.nowMs -= 1;
  hook.run();
  expect(runs).toEqual([]);
  coordinator.clock.nowMs += 1;
  hook.run();
  expect(runs).toHaveLength(1);
});

test('whoever may be cut off himself fences nobody', () => {
  const { hook, runs } = aHook(() => 'most nodes are silent');
  fallSilent();
  hook.run();
  expect(runs).toEqual([]);
});

// ---- The command itself

test('the command gets the node’s name and addresses, and its exit code and last lines are reported', async () => {
  const run = fenceCommandRunner('echo "$MUSTER_NODE at $MUSTER_NODE_ADDRESSES, $GREETING" >&2; exit 3', {
    PATH: process.env['PATH'],
    GREETING: 'hello',
  });
  expect(await run(node, ['10.0.0.1', 'fd00::1'], signal)).toEqual({
    exitCode: 3,
    output: 'node-1 at 10.0.0.1 fd00::1, hello',
  });
  expect(await fenceCommandRunner('exit 0', {})(node, [], signal)).toEqual({ exitCode: 0, output: '' });
});

test('one that is given up leaves no process behind, and is no proof', async () => {
  const abort = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), 'muster-fence-'));
  const pidFile = join(directory, 'pid');
  const run = fenceCommandRunner('sleep 600 & echo $! > "$PID_FILE"; wait', {
    PATH: process.env['PATH'],
    PID_FILE: pidFile,
  });
  const ended = run(node, [], abort.signal);
  await vi.waitFor(() => expect(readFileSync(pidFile, 'utf8')).toMatch(/\d\n/));
  const pid = readFileSync(pidFile, 'utf8').trim();
  abort.abort();
  expect((await ended).exitCode).toBeNull();
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false));
  rmSync(directory, { recursive: true });
});

test('one that does not start is no proof', async () => {
  // Longer than what Linux lets one variable be.
  const run = fenceCommandRunner('exit 0', { LONG: 'x'.repeat(200_000) });
  expect(await run(node, [], signal)).toEqual({ exitCode: null, output: expect.stringContaining('E2BIG') });
});

test('what it leaves behind holds no pipe of ours open', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-fence-'));
  const pidFile = join(directory, 'pid');
  const left = '(while echo waiting; do sleep 0.02; done) & echo $! > "$PID_FILE"';
  const run = fenceCommandRunner(left, { PATH: process.env['PATH'], PID_FILE: pidFile });
  expect((await run(node, [], signal)).exitCode).toBe(0);
  const pid = readFileSync(pidFile, 'utf8').trim();
  onTestFinished(() => {
    if (isRunning(pid)) process.kill(Number(pid), 'SIGKILL');
    rmSync(directory, { recursive: true });
  });
  // It ends because nobody reads what it writes.
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false));
});

/** Not so once it is only waiting to be reaped. */
function isRunning(pid: string): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
