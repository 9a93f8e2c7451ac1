import { stripVTControlCharacters } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { type Answers, aGpu, aHostReading, aJob, aNode, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run, type TestOptions } from '../testing/testContext.ts';

const node = aNode({ inventory: { ...aNode().inventory, gpus: [aGpu(0), aGpu(1)] } });
const telemetry = { node: 'node-1', host: aHostReading({ cpuUtilization: 12 }), gpus: [] };
const answers: Answers = {
  ListNodes: () => ({ nodes: [wire.node(node)] }),
  GetNode: () => wire.node(node),
  ListTelemetry: () => ({ nodes: [wire.telemetry(telemetry)] }),
  ListJobs: () => ({ jobs: [], more: false }),
};
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';

test('without a terminal it prints once, without colours and escapes', async () => {
  const { exitCode, stdout, requests } = await run(['top'], answers);
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toMatch(
    /^1 node · 0\/2 GPUs in use · 0 jobs at work\nNODE .*\n {2}GPU .*\nnode-1 +online +12 % /,
  );
  expect(stdout).toBe(stripVTControlCharacters(stdout));
  expect(requests.map(({ method }) => method).toSorted()).toEqual(['ListJobs', 'ListNodes', 'ListTelemetry']);
  expect(requests.find(({ method }) => method === 'ListJobs')).toMatchObject({ request: { brief: true } });
});

test('--once prints once on a terminal too', async () => {
  const { exitCode, stdout } = await run(['top', '--once'], answers, { columns: 80 });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).not.toContain('\x1b[?');
  expect(stripVTControlCharacters(stdout)).toContain('node-1  online');
});

test('-o json prints what the API gave, of one node when it is named', async () => {
  const job = aJob({ state: 'running' });
  const busy = { ...answers, ListJobs: () => ({ jobs: [wire.job(job)], more: false }) };
  const { stdout, requests } = await run(['top', 'node-1', '-o', 'json'], busy, { columns: 80 });
  expect(JSON.parse(stdout)).toEqual({ nodes: [node], telemetry: [telemetry], jobs: [job] });
  expect(requests.find(({ method }) => method === 'ListJobs')).toMatchObject({ request: { brief: false } });
  const asked = requests.find(({ method }) => method === 'ListTelemetry');
  expect(asked?.request).toMatchObject({ node: 'node-1' });
});

// ---- On a terminal

async function startTop(given: Answers = answers, options: TestOptions = {}) {
  const coordinator = await fakeCoordinator(given);
  const call = newCall(coordinator.address, { columns: 80, rows: 24, ...options });
  const ended = runCli(['top', '--refresh', '0.5s'], call.context);
  onTestFinished(async () => {
    call.pressCtrlC();
    await ended;
  });
  const plain = () => stripVTControlCharacters(call.stdout());
  await waitFor('the first picture', () => plain().includes('q quits'));
  return { ...call, coordinator, ended, plain, lastFrame: () => plain().split('q quits').at(-2) ?? '' };
}

test.each([
  ['q', (top: Awaited<ReturnType<typeof startTop>>) => top.press('q')],
  ['Ctrl-C as a key', (top: Awaited<ReturnType<typeof startTop>>) => top.press('\x03')],
  ['Ctrl-C as a signal', (top: Awaited<ReturnType<typeof startTop>>) => top.pressCtrlC()],
])('%s leaves, and the terminal is as it was', async (_how, leaveIt) => {
  const top = await startTop();
  expect(top.keyListeners.size).toBe(1);
  leaveIt(top);
  expect(await top.ended).toBe(exitCodes.ok);
  expect(top.stdout().startsWith(enter)).toBe(true);
  expect(top.stdout().endsWith(leave)).toBe(true);
  expect(top.stdout().split(enter)).toHaveLength(2);
  expect(top.keyListeners.size).toBe(0);
  expect(top.stderr()).toBe('');
});

test('it looks again, and shows what has changed', async () => {
  let looks = 0;
  const top = await startTop({
    ...answers,
    ListTelemetry: () => {
      looks += 1;
      return { nodes: [wire.telemetry({ ...telemetry, host: aHostReading({ cpuUtilization: looks }) })] };
    },
  });
  await waitFor('a third look', () => /node-1 +online +3 % /.test(top.plain()));
});

test('the size of the window is followed; what does not fit scrolls', async () => {
  const many = Array.from({ length: 30 }, (_, index) =>
    aNode({ name: `n-${String(index).padStart(2, '0')}` }),
  );
  const top = await startTop({ ...answers, ListNodes: () => ({ nodes: many.map(wire.node) }) });
  await waitFor('21 of 30', () => top.plain().includes('lines 1 to 21 of 30'));
  top.press('\x1b[B');
  await waitFor('one line down', () => top.plain().includes('lines 2 to 22 of 30'));
  top.press('jj\x1b[Ak');
  top.press('jj');
  await waitFor('keys that come at once', () => top.plain().includes('lines 4 to 24 of 30'));
  top.press('\x1b[6~');
  await waitFor('not beyond the end', () => top.plain().includes('lines 10 to 30 of 30'));
  top.resize(40, 13);
  await waitFor('the smaller window', () => top.plain().includes('lines 10 to 19 of 30'));
  const rows = top.stdout().split('\x1b[H').at(-1)?.split('\r\n') ?? [];
  expect(rows).toHaveLength(13);
});

test('a coordinator that goes away is waited for, with the last picture and why', async () => {
  const top = await startTop();
  top.coordinator.kill();
  await waitFor('the loss', () =>
    top.plain().includes(`no coordinator answers at ${top.coordinator.address}`),
  );
  await waitFor('the last picture below it', () =>
    /reconnecting\. The view of [\d.]+ s ago:[^]*node-1 +online/.test(top.plain()),
  );
  await fakeCoordinator(answers, top.coordinator.address);
  const before = top.stdout().length;
  await waitFor('the return', () =>
    stripVTControlCharacters(top.stdout().slice(before)).includes('1 node · 0/2 GPUs'),
  );
});

test('leaving while the coordinator is away takes no patience', async () => {
  const top = await startTop();
  top.coordinator.kill();
  await waitFor('the loss', () => top.plain().includes('reconnecting'));
  top.press('q');
  expect(await top.ended).toBe(exitCodes.ok);
  expect(top.stdout().endsWith(leave)).toBe(true);
});

test('a refusal is printed on the terminal as it was', async () => {
  let looks = 0;
  const top = await startTop({
    ...answers,
    ListNodes: () => {
      looks += 1;
      if (looks > 1) throw new Error('broken');
      return { nodes: [] };
    },
  });
  expect(await top.ended).toBe(exitCodes.bug);
  expect(top.stdout().endsWith(leave)).toBe(true);
  expect(top.stderr()).toContain('broken');
});

test('without a coordinator the screen never changes', async () => {
  const call = newCall('127.0.0.1:1', { columns: 80 });
  expect(await runCli(['top'], call.context)).toBe(exitCodes.unreachable);
  expect(call.stdout()).toBe('');
});
