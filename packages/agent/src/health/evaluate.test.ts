/** From what was read of the GPUs to conditions, and to their end. */
import type { Condition } from '@muster/common/conditions';
import { bareGpu } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import type { GpuProblem, GpuSample } from '../gpus/gpuSource.ts';
import { defaultConditionTable } from './conditionTable.ts';
import {
  aProblem,
  aSample,
  cardA,
  cardB,
  gpuB,
  HealthNode,
  moment,
  pciA,
  taskOfJob,
} from './healthFixture.ts';

const minute = 60_000;

const ecc = {
  correctedVolatile: 0,
  uncorrectedVolatile: 0,
  correctedAggregate: 0,
  uncorrectedAggregate: 0,
  sramThresholdExceeded: false,
};
const rows = { correctable: 0, uncorrectable: 0, pending: false, failed: false };
const pages = { singleBit: 0, doubleBit: 0, pending: false };
const links = { replay: 0, recovery: 0, crc: 0 };

/** Value before, value then => condition and what it means. */
test.each<[string, Partial<GpuSample>, Partial<GpuSample>, Partial<Condition>]>([
  [
    'uncorrected ECC errors',
    { ecc },
    { ecc: { ...ecc, uncorrectedVolatile: 2 } },
    { kind: 'ecc_uncorrectable', action: 'reset_when_idle', clears: 'by_reboot', severity: 'critical' },
  ],
  [
    'uncorrected ECC errors of a driver that only tells the total',
    { ecc: { ...ecc, uncorrectedVolatile: null, uncorrectedAggregate: 7 } },
    { ecc: { ...ecc, uncorrectedVolatile: null, uncorrectedAggregate: 8 } },
    { kind: 'ecc_uncorrectable' },
  ],
  [
    'a storm of corrected errors',
    { ecc },
    { ecc: { ...ecc, correctedVolatile: 1_000 } },
    { kind: 'ecc_corrected_storm', action: 'note', clears: 'when_quiet' },
  ],
  [
    'a pending row remap',
    { rows },
    { rows: { ...rows, pending: true } },
    { kind: 'row_remap_pending', action: 'reset_when_idle' },
  ],
  [
    'a failed row remap',
    { rows },
    { rows: { ...rows, failed: true } },
    { kind: 'row_remap_failed', action: 'drain_gpu' },
  ],
  [
    'pages to be retired',
    { retiredPages: pages },
    { retiredPages: { ...pages, pending: true } },
    { kind: 'retired_pages_pending', action: 'reset_when_idle' },
  ],
  [
    'too many retired pages',
    { retiredPages: pages },
    { retiredPages: { ...pages, singleBit: 60, doubleBit: 2 } },
    { kind: 'retired_pages_limit', action: 'drain_gpu' },
  ],
  [
    'SRAM beyond its threshold',
    { ecc },
    { ecc: { ...ecc, sramThresholdExceeded: true } },
    { kind: 'sram_threshold_exceeded', action: 'drain_gpu' },
  ],
  [
    'NVLink errors',
    { nvlinkErrors: links },
    { nvlinkErrors: { ...links, crc: 90, replay: 10 } },
    { kind: 'nvlink_errors', action: 'note' },
  ],
  ['PCIe replays', { pcieReplays: 5 }, { pcieReplays: 105 }, { kind: 'pcie_replays', action: 'note' }],
  [
    'a reset that the driver asks for',
    { recoveryAction: 0 },
    { recoveryAction: 1 },
    { kind: 'gpu_recovery_gpu_reset', action: 'drain_gpu' },
  ],
  [
    'a reboot that the driver asks for',
    { recoveryAction: 0 },
    { recoveryAction: 2 },
    { kind: 'gpu_recovery_node_reboot', action: 'drain_node' },
  ],
  [
    'a recovery nobody knows yet',
    { recoveryAction: 0 },
    { recoveryAction: 9 },
    { kind: 'gpu_recovery_other', action: 'drain_gpu' },
  ],
])('%s', (_, before, then, expected) => {
  const node = new HealthNode().samples(before);
  expect(node.conditions).toEqual([]);
  node.after(1_000).samples(then, { [cardA]: taskOfJob('a') });
  expect(node.conditions).toMatchObject([
    { ...expected, gpuUuid: cardA, count: 1, task: taskOfJob('a'), sinceMs: moment(1_001_000).wallMs },
  ]);
  const [condition] = node.conditions;
  expect(condition?.message).toContain('GPU 0 (0000:1b:00.0)');
  expect(condition?.message).not.toMatch(/\{|\}|undefined|null/);
  expect(condition?.evidence).not.toBe('');
});

test('values that were not read raise nothing and end nothing', () => {
  const node = new HealthNode().samples({ rows: { ...rows, failed: true } });
  node
    .after(1_000)
    .samples({})
    .after(60 * minute)
    .samples({});
  expect(node.kinds).toEqual(['row_remap_failed']);
  expect(new HealthNode().samples({}).samples({ clockEventReasons: null }).kinds).toEqual([]);
});

test('errors from before the first reading count since the driver was loaded, not of the whole life', () => {
  expect(new HealthNode().samples({ ecc: { ...ecc, uncorrectedAggregate: 12 } }).kinds).toEqual([]);
  expect(new HealthNode().samples({ ecc: { ...ecc, uncorrectedVolatile: 1 } }).kinds).toEqual([
    'ecc_uncorrectable',
  ]);
});

test('slow growth is no storm, and a counter that started over is no growth', () => {
  const node = new HealthNode().samples({ pcieReplays: 0 });
  for (let replays = 50; replays <= 1_000; replays += 50)
    node.after(10 * minute).samples({ pcieReplays: replays });
  expect(node.kinds).toEqual([]);
  node.after(minute).samples({ pcieReplays: 3 });
  expect(node.kinds).toEqual([]);
});

test('a storm ends when nothing more was counted for an hour', () => {
  const node = new HealthNode().samples({ pcieReplays: 0 }).after(1_000).samples({ pcieReplays: 500 });
  node.after(5 * minute).samples({ pcieReplays: 500 });
  node.after(54 * minute).samples({ pcieReplays: 500 });
  expect(node.kinds).toEqual(['pcie_replays']);
  node.after(2 * minute).samples({ pcieReplays: 500 });
  expect(node.kinds).toEqual([]);
});

test.each([
  [0x20, 'thermal_throttling'],
  [0x40, 'thermal_throttling'],
  [0x48, 'thermal_throttling'],
  [0x80, 'power_brake'],
  [0x8, 'power_brake'],
])('clock event reasons 0x%s for ten seconds are %s', (clockEventReasons, kind) => {
  const node = new HealthNode().samples({ clockEventReasons });
  expect(node.kinds).toEqual([]);
  node.after(5_000).samples({ clockEventReasons });
  expect(node.kinds).toEqual([]);
  node.after(5_000).samples({ clockEventReasons });
  expect(node.kinds).toEqual([kind]);
});

test('the power cap and an idle GPU are no condition', () => {
  const node = new HealthNode().samples({ clockEventReasons: 0x5 }).after(minute);
  expect(node.samples({ clockEventReasons: 0x5 }).kinds).toEqual([]);
});

test('what flaps is one condition until it has been well for a while', () => {
  const node = new HealthNode();
  for (let second = 0; second < 300; second += 1) {
    // Well for a second every twenty.
    node.after(1_000).samples({ clockEventReasons: second % 20 === 19 ? 0 : 0x40 });
    if (second > 11) expect(node.kinds).toEqual(['thermal_throttling']);
  }
  expect(node.conditions[0]?.count).toBeGreaterThan(10);
  node.samples({ clockEventReasons: 0 }).after(59_000).samples({ clockEventReasons: 0 });
  expect(node.kinds).toEqual(['thermal_throttling']);
  expect(node.after(1_000).samples({ clockEventReasons: 0 }).kinds).toEqual([]);
});

test('a blip is no condition, and leaves nothing behind', () => {
  const node = new HealthNode();
  for (let second = 0; second < 60; second += 2) {
    node.after(1_000).samples({ clockEventReasons: 0x40 }).after(1_000).samples({ clockEventReasons: 0 });
  }
  expect(node.kinds).toEqual([]);
  expect(node.state.entries.size).toBe(0);
});

// ---- Cards that do not answer

test.each<[GpuProblem['kind'], string, Condition['action']]>([
  ['lost', 'gpu_lost', 'drain_gpu'],
  ['reset_required', 'gpu_reset_required', 'drain_gpu'],
  ['hung', 'gpu_hung', 'drain_gpu'],
  ['unreadable', 'gpu_unreadable', 'note'],
  ['no_permission', 'gpu_no_permission', 'note'],
])('a card that is %s', (problem, kind, action) => {
  const node = new HealthNode().reads();
  node.after(1_000).reads({
    samples: [aSample(cardB)],
    // Some sources know the UUID, some only where the card sits.
    problems: [aProblem(problem, { pciBusId: '0000:1b:00' })],
  });
  expect(node.conditions).toMatchObject([{ kind, action, gpuUuid: cardA, evidence: 'what was read' }]);
  node.after(1_000).reads().after(minute).reads();
  expect(node.kinds).toEqual([]);
});

test('a failure without a reason is one only when it lasts', () => {
  const failing = { samples: [aSample(cardB)], problems: [aProblem('unknown_error', { gpuUuid: cardA })] };
  const node = new HealthNode().reads().reads(failing);
  expect(node.kinds).toEqual([]);
  node.after(30_000).reads(failing);
  expect(node.conditions).toMatchObject([{ kind: 'gpu_unknown_error', action: 'drain_gpu' }]);
});

test('a driver that hangs makes every known card suspect, and leaves the node to work without GPUs', () => {
  const node = new HealthNode().reads().reads({ gpus: [], problems: [aProblem('hung')] });
  expect(node.conditions.map(({ kind, action, gpuUuid }) => [kind, action, gpuUuid])).toEqual([
    ['gpu_hung', 'drain_gpu', cardA],
    ['gpu_hung', 'drain_gpu', cardB],
  ]);
  node.reads().after(minute).reads();
  expect(node.kinds).toEqual([]);
});

test.each<[GpuProblem['kind'], string]>([
  ['driver_mismatch', 'driver_mismatch'],
  ['driver_not_loaded', 'driver_not_loaded'],
])('%s drains the node until the driver answers', (problem, kind) => {
  const node = new HealthNode().reads().reads({ gpus: [], problems: [aProblem(problem)] });
  expect(node.conditions).toMatchObject([{ kind, action: 'drain_node', gpuUuid: null }]);
  // Another failure does not mean that the first is fixed.
  node.after(minute).reads({ gpus: [], problems: [aProblem('hung')] });
  node.after(2 * minute).reads({ gpus: [], problems: [aProblem('hung')] });
  expect(node.kinds).toContain(kind);
  node.reads().after(minute).reads();
  expect(node.kinds).toEqual([]);
});

test.each<GpuProblem['kind']>([
  'lost',
  'hung',
  'unknown_error',
  'reset_required',
  'driver_mismatch',
  'driver_not_loaded',
])('after %s of the driver the GPUs take work again within a minute of its recovery', (problem) => {
  // Listed again up to 30 s after the recovery, and then read every 5 s by the slowest source.
  const [listedMs, readMs] = [30_000, 5_000];
  const failing = { gpus: [], problems: [aProblem(problem)] };
  const node = new HealthNode().reads().reads(failing).after(minute).reads(failing);
  expect(node.conditions.map(({ action }) => action)).toContainEqual(expect.stringMatching(/^drain_/));
  node.after(listedMs).reads();
  expect(node.kinds).not.toEqual([]);
  for (let wellMs = listedMs; wellMs + readMs < minute; wellMs += readMs) node.after(readMs).reads();
  expect(node.kinds).toEqual([]);
});

test('hostile evidence is cut, and cannot write to a terminal', () => {
  const evidence = `\u001b[31m${'x'.repeat(1_000_000)}`;
  const node = new HealthNode().reads({
    problems: [aProblem('lost', { gpuUuid: cardA, evidence })],
    samples: [],
  });
  const [condition] = node.conditions;
  expect(condition?.evidence.length).toBeLessThanOrEqual(1000);
  expect(condition?.evidence).not.toContain('\u001b');
});

test('a driver that makes GPUs up fills no memory', () => {
  const node = new HealthNode();
  for (let round = 0; round < 50; round += 1) {
    const gpus = Array.from({ length: 100 }, (_, index) => bareGpu(`GPU-${round}-${index}`));
    node
      .after(1_000)
      .reads({ gpus, samples: gpus.map(({ uuid }) => aSample(uuid, { rows: { ...rows, failed: true } })) });
  }
  expect(node.state.cards.size).toBeLessThanOrEqual(128);
  expect(node.state.counters.size).toBeLessThanOrEqual(256);
  expect(node.state.entries.size).toBeLessThanOrEqual(400);
});

// ---- Cards that are gone

test('a card that is listed no more is missing, and stays known when it comes back', () => {
  const node = new HealthNode()
    .reads()
    .after(1_000)
    .reads({ gpus: [gpuB] });
  expect(node.conditions).toMatchObject([
    { kind: 'gpu_missing', gpuUuid: cardA, action: 'drain_gpu', severity: 'critical' },
  ]);
  expect(node.conditions[0]?.evidence).toContain('1 of 2 GPUs');
  node.after(1_000).reads();
  expect(node.kinds).toEqual(['gpu_missing']);
  expect(node.after(minute).reads().kinds).toEqual([]);
});

test('a card that is named as lost is not missing as well', () => {
  const node = new HealthNode()
    .reads()
    .reads({ gpus: [gpuB], problems: [aProblem('lost', { pciBusId: pciA })] });
  expect(node.kinds).toEqual(['gpu_lost']);
});

test('a missing card that was taken out is forgotten', () => {
  const node = new HealthNode().reads().reads({ gpus: [gpuB] });
  node.takes({ kind: 'clear', conditionKind: 'gpu_missing', gpuUuid: cardA }).reads({ gpus: [gpuB] });
  expect(node.kinds).toEqual([]);
});

test('what else was wrong with a card that was taken out goes with it', () => {
  const node = new HealthNode().samples({ rows: { ...rows, failed: true } }).reads({ gpus: [gpuB] });
  expect([...node.kinds].sort()).toEqual(['gpu_missing', 'row_remap_failed']);
  node.takes({ kind: 'clear', conditionKind: 'gpu_missing', gpuUuid: cardA }).reads({ gpus: [gpuB] });
  expect(node.kinds).toEqual([]);
});

test('simulated GPUs may come and go, and hide no real ones', () => {
  const simulated = { ...bareGpu('GPU-SIMULATED-n-0'), simulated: true };
  const node = new HealthNode().reads().reads({ gpus: [simulated], source: 'simulated' });
  expect(node.reads({ gpus: [], source: 'simulated' }).kinds).toEqual([]);
  expect(node.reads().kinds).toEqual([]);
});

test('a card in MIG mode is there while its instances are, and is judged by the worst of them', () => {
  const instance = (uuid: string) => ({
    ...bareGpu(uuid),
    pciBusId: pciA,
    mig: { parentUuid: cardA, profile: '1g.10gb', gpuInstanceId: 9, computeInstanceId: 0 },
  });
  const gpus = [instance('MIG-1'), instance('MIG-2'), gpuB];
  const samples = [aSample('MIG-1', { rows: { ...rows, failed: true } }), aSample('MIG-2', { rows })];
  const node = new HealthNode().reads().reads({ gpus, samples, holders: { 'MIG-2': taskOfJob('b') } });
  expect(node.conditions).toMatchObject([{ kind: 'row_remap_failed', gpuUuid: cardA, task: taskOfJob('b') }]);
});

// ---- What ends a condition

test('a reset ends what only a reset ends', () => {
  const broken = { ecc: { ...ecc, uncorrectedVolatile: 1 }, energyMillijoules: 9_000_000 };
  const node = new HealthNode().samples(broken);
  node.after(60 * minute).samples({ ...broken, energyMillijoules: 9_900_000 });
  expect(node.kinds).toEqual(['ecc_uncorrectable']);
  node.after(minute).samples({ ecc, energyMillijoules: 1_000 });
  expect(node.kinds).toEqual([]);
});

test('a reboot ends what a reboot ends, and what is read stays until it was read', () => {
  const node = new HealthNode().samples({
    ecc: { ...ecc, uncorrectedVolatile: 1 },
    rows: { ...rows, failed: true },
    recoveryAction: 2,
  });
  // What keeps the node from work comes first, then what keeps a GPU from it.
  expect(node.kinds).toEqual(['gpu_recovery_node_reboot', 'row_remap_failed', 'ecc_uncorrectable']);
  node.starts('boot-2');
  expect(node.kinds).toEqual(['row_remap_failed']);
  node.samples({ rows }).after(minute).samples({ rows });
  expect(node.kinds).toEqual([]);
});

test('a new table counts for what is already there', () => {
  const node = new HealthNode().samples({ rows: { ...rows, failed: true } });
  const row = defaultConditionTable.rows.get('row_remap_failed');
  if (row === undefined) throw new Error('the table has no such row');
  node.table = {
    ...defaultConditionTable,
    rows: new Map([['row_remap_failed', { ...row, action: 'note', severity: 'info' }]]),
  };
  node.starts('boot-1');
  expect(node.conditions).toMatchObject([{ action: 'note', severity: 'info' }]);
});
