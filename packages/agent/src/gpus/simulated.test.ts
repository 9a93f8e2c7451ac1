import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { GpuSample } from './gpuSource.ts';
import { createSimulatedSource, readSimulatedStates, type SimulatedState } from './simulated.ts';

function aNode(options: { count?: number; held?: string[]; states?: Map<number, SimulatedState> } = {}) {
  const clock = { ms: 1_000_000 };
  const held = new Set(options.held ?? []);
  const source = createSimulatedSource({
    nodeName: 'a',
    count: options.count ?? 2,
    nowMs: () => clock.ms,
    holders: () => held,
    states: () => options.states ?? new Map(),
  });
  return { clock, held, source };
}

async function only(source: ReturnType<typeof aNode>['source']): Promise<GpuSample> {
  const { samples } = await source.sample();
  const [sample] = samples;
  if (sample === undefined || samples.length !== 1) throw new Error(`${samples.length} samples`);
  return sample;
}

test('every GPU is labelled as simulated, by its flag and by its name', async () => {
  const { source } = aNode({ count: 2 });
  expect(source.name).toBe('simulated');
  const { gpus, driverVersion, problems } = await source.list();
  expect(gpus.map(({ uuid, model, memoryMb, simulated }) => [uuid, model, memoryMb, simulated])).toEqual([
    ['GPU-SIMULATED-a-0', 'Simulated GPU', 81_920, true],
    ['GPU-SIMULATED-a-1', 'Simulated GPU', 81_920, true],
  ]);
  expect([driverVersion, problems]).toEqual([null, []]);
  const { samples } = await source.sample();
  expect(samples.map(({ uuid }) => uuid)).toEqual(gpus.map(({ uuid }) => uuid));
});

test('a GPU is busy exactly while a task holds it', async () => {
  const { source, held } = aNode({ count: 2, held: ['GPU-SIMULATED-a-1'] });
  const before = (await source.sample()).samples;
  expect(before[0]).toMatchObject({ utilization: 0, memoryUsedMb: 0, activity: { smActive: 0 } });
  expect(before[1]?.utilization).toBeGreaterThan(80);
  expect(before[1]?.memoryUsedMb).toBeGreaterThan(10_000);
  expect(before[1]?.activity?.smActive).toBeGreaterThan(0.5);
  held.clear();
  expect((await source.sample()).samples[1]).toMatchObject({ utilization: 0, memoryUsedMb: 0 });
});

test('a GPU that is held can be set to show what one shows whose training hangs', async () => {
  const states = new Map<number, SimulatedState>([
    [1, 'pinned'],
    [2, 'idle'],
    [3, 'pinned'],
  ]);
  const held = ['GPU-SIMULATED-a-0', 'GPU-SIMULATED-a-1', 'GPU-SIMULATED-a-2'];
  const { source } = aNode({ count: 4, held, states });
  const [busy, pinned, idle, free] = (await source.sample()).samples;
  expect(pinned).toMatchObject({ utilization: 100, memoryUsedMb: 61_500, activity: { tensorActive: 0 } });
  expect(pinned?.powerWatts).toBeLessThan(0.4 * (busy?.powerWatts ?? 0));
  expect(idle).toMatchObject({ utilization: 0, memoryUsedMb: 62_000 });
  expect(free).toMatchObject({ utilization: 0, memoryUsedMb: 0 });
});

test('the same time gives the same sample, another time another one', async () => {
  const a = aNode({ count: 1, held: ['GPU-SIMULATED-a-0'] });
  const b = aNode({ count: 1, held: ['GPU-SIMULATED-a-0'] });
  expect(await only(a.source)).toEqual(await only(b.source));
  a.clock.ms += 10_000;
  expect((await only(a.source)).utilization).not.toBe((await only(b.source)).utilization);
});

test('values stay within what a GPU can have, at any time', async () => {
  const { source, clock } = aNode({ count: 8, held: ['GPU-SIMULATED-a-3', 'GPU-SIMULATED-a-7'] });
  for (let step = 0; step < 200; step++) {
    clock.ms += 777;
    for (const sample of (await source.sample()).samples) {
      const { utilization, memoryUsedMb, memoryFreeMb, memoryReservedMb, powerWatts, activity } = sample;
      expect(utilization).toBeGreaterThanOrEqual(0);
      expect(utilization).toBeLessThanOrEqual(100);
      expect((memoryUsedMb ?? 0) + (memoryFreeMb ?? 0) + (memoryReservedMb ?? 0)).toBe(81_920);
      expect(powerWatts).toBeLessThanOrEqual(700);
      for (const ratio of [activity?.smActive, activity?.tensorActive, activity?.dramActive]) {
        expect(ratio).toBeGreaterThanOrEqual(0);
        expect(ratio).toBeLessThanOrEqual(1);
      }
    }
  }
});

test('the energy counter grows by what was drawn, and never runs backwards', async () => {
  const { source, clock } = aNode({ count: 1 });
  expect((await only(source)).energyMillijoules).toBe(0);
  clock.ms += 10_000;
  const first = await only(source);
  expect(first.energyMillijoules).toBe((first.powerWatts ?? 0) * 10_000);
  clock.ms -= 5_000;
  expect((await only(source)).energyMillijoules).toBe(first.energyMillijoules);
});

function statesOf(text: string | null): Record<string, string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'simulated-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  if (text !== null) writeFileSync(join(dataDir, 'simulated-gpus'), text);
  return Object.fromEntries(readSimulatedStates(dataDir));
}

test('a line is the state of all GPUs, or of one; later lines win', () => {
  expect(statesOf('3 pinned\n0 idle\n')).toEqual({ 0: 'idle', 3: 'pinned' });
  const all = statesOf('pinned\n1 busy\n');
  expect([all[0], all[1], all[63]]).toEqual(['pinned', 'busy', 'pinned']);
});

test('without the file, or with what is not understood, nothing is reported', () => {
  expect(statesOf(null)).toEqual({});
  expect(statesOf('hung\n1\n-1 idle\n\u0000')).toEqual({});
});
