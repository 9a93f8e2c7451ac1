import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Condition } from '@muster/common/conditions';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ConditionStore } from './conditionStore.ts';
import { defaultConditionTable } from './conditionTable.ts';
import {
  anObservation,
  aProblem,
  aRecord,
  aSample,
  cardA,
  cardB,
  FakeTime,
  gpuB,
  taskOfJob,
} from './healthFixture.ts';
import { HealthMonitor } from './monitor.ts';
import { startHealth } from './start.ts';

let directory: string;
let time: FakeTime;
let warnings: string[];
const log = { ...silentLogger, warn: (_: object, message: string) => warnings.push(message) };

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-health-'));
  time = new FakeTime();
  warnings = [];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const stored = () => join(directory, 'conditions.json');
const xid = (number: number) => `NVRM: Xid (PCI:0000:1b:00): ${number}, pid=7, name=a, x`;

function start(bootId = 'boot-1'): HealthMonitor {
  const store = new ConditionStore(directory, log);
  return new HealthMonitor({ table: defaultConditionTable, store, bootId, now: time.now, log });
}

function kinds(monitor: HealthMonitor): readonly string[] {
  return monitor.conditions().map(({ kind }) => kind);
}

const failed = { correctable: 0, uncorrectable: 8, pending: false, failed: true };
const broken = anObservation({ samples: [aSample(cardA, { rows: failed }), aSample(cardB)] });

test('listeners receive what is new at once, and what only moves on once a minute', () => {
  const monitor = start();
  const received: (readonly Condition[])[] = [];
  const stop = monitor.onChange((conditions) => received.push(conditions));
  monitor.observe(anObservation());
  expect(received).toEqual([]);
  monitor.observe(broken);
  expect(received).toMatchObject([[{ kind: 'row_remap_failed' }]]);
  for (let second = 0; second < 59; second += 1) {
    time.pass(1_000);
    monitor.observe(broken);
    monitor.tick();
  }
  expect(received).toHaveLength(1);
  time.pass(1_000);
  monitor.tick();
  expect(received).toHaveLength(2);
  expect(received[1]?.[0]?.lastSeenAtMs).toBeGreaterThan(received[0]?.[0]?.lastSeenAtMs ?? 0);
  expect(monitor.clear('row_remap_failed', cardA)).toBe(true);
  expect(received.at(-1)).toEqual([]);
  expect(monitor.clear('row_remap_failed', cardA)).toBe(false);
  stop();
  monitor.observe(broken);
  expect(received).toHaveLength(3);
  monitor.close();
});

test('what is still so after it was cleared is back with the next reading', () => {
  const monitor = start();
  monitor.observe(broken);
  monitor.clear('row_remap_failed', cardA);
  monitor.observe(broken);
  expect(kinds(monitor)).toEqual(['row_remap_failed']);
});

test('an Xid of the kernel log waits until the GPUs are known', () => {
  const monitor = start();
  monitor.kernelRecord(aRecord(1, xid(48)), true);
  monitor.observe({ ...anObservation({ gpus: [] }), atMs: 0 });
  monitor.observe(anObservation({ gpus: [], problems: [aProblem('hung')] }));
  expect(kinds(monitor)).toEqual(['gpu_hung']);
  monitor.observe(anObservation());
  expect(monitor.conditions()).toContainEqual(
    expect.objectContaining({ kind: 'xid_48', gpuUuid: cardA, action: 'drain_gpu' }),
  );
  expect(monitor.lastXids()).toEqual(new Map([[cardA, 48]]));
});

test('a driver that never lists GPUs does not keep Xids from being reported', () => {
  const monitor = start();
  monitor.kernelRecord(aRecord(1, xid(79)), false);
  time.pass(29_000);
  monitor.tick();
  expect(kinds(monitor)).toEqual([]);
  time.pass(1_000);
  monitor.tick();
  expect(monitor.conditions()).toMatchObject([{ kind: 'xid_79', action: 'drain_node' }]);
});

test('what a program wrote into the kernel log is no Xid', () => {
  const monitor = start();
  monitor.observe(anObservation());
  monitor.kernelRecord(aRecord(1, xid(79), { fromKernel: false }), false);
  expect(kinds(monitor)).toEqual([]);
});

test('the holder of the GPU is to blame for what is printed now, and for nothing from before', () => {
  const monitor = start();
  monitor.observe(anObservation({ holders: { [cardA]: taskOfJob('a') } }));
  monitor.kernelRecord(aRecord(1, xid(48), { uptimeMs: time.uptimeMs - 500_000 }), true);
  monitor.kernelRecord(aRecord(2, xid(31)), false);
  const task = (kind: string) => monitor.conditions().find((condition) => condition.kind === kind)?.task;
  expect(task('xid_48')).toBeNull();
  expect(task('xid_31')).toEqual(taskOfJob('a'));
});

test('a restart of the agent forgets nothing and counts nothing twice', () => {
  const first = start();
  first.observe(anObservation());
  first.kernelRecord(aRecord(1, xid(48)), false);
  first.kernelRecord(aRecord(2, xid(48)), false);
  first.close();
  time.pass(5_000);
  const second = start();
  expect(second.conditions()).toEqual(first.conditions());
  second.kernelRecord(aRecord(1, xid(48)), true);
  second.kernelRecord(aRecord(2, xid(48)), true);
  second.kernelRecord(aRecord(3, xid(48), { uptimeMs: time.uptimeMs - 1_000 }), true);
  // Known from the first run: a card that is gone now is missed.
  second.observe(anObservation({ gpus: [gpuB] }));
  expect(second.conditions()).toMatchObject([
    { kind: 'xid_48', count: 3 },
    { kind: 'gpu_missing', gpuUuid: cardA },
  ]);
});

test('after a reboot the numbers of the kernel log start over, and what a reboot ends is over', () => {
  const first = start();
  first.observe(anObservation());
  first.kernelRecord(aRecord(5_000, xid(79)), false);
  first.close();
  time.uptimeMs = 20_000;
  const second = start('boot-2');
  expect(kinds(second)).toEqual([]);
  second.observe(anObservation());
  second.kernelRecord(aRecord(12, xid(48)), false);
  expect(kinds(second)).toEqual(['xid_48']);
});

test('facts that still waited when the agent stopped are read again', () => {
  const first = start();
  first.kernelRecord(aRecord(1, 'Linux'), true);
  first.kernelRecord(aRecord(2, xid(48)), true);
  first.clockSkew(60_000);
  first.close();
  const second = start();
  second.kernelRecord(aRecord(1, 'Linux'), true);
  second.kernelRecord(aRecord(2, xid(48)), true);
  second.observe(anObservation());
  expect(kinds(second)).toEqual(['xid_48', 'clock_skew']);
});

test('what is new is on disk within a tick, and nothing is written when nothing changes', () => {
  const monitor = start();
  monitor.observe(anObservation());
  monitor.tick();
  rmSync(stored());
  monitor.observe(anObservation());
  time.pass(1_000);
  monitor.tick();
  expect(existsSync(stored())).toBe(false);
  monitor.observe(broken);
  monitor.tick();
  expect(readFileSync(stored(), 'utf8')).toContain('row_remap_failed');
});

test.each(['', '{', '[]', '{"version": 1}', 'null', '{"bootId": 7}'])(
  'a stored state %j is put aside and started without',
  (content) => {
    writeFileSync(stored(), content);
    expect(kinds(start())).toEqual([]);
    expect(readFileSync(`${stored()}.damaged`, 'utf8')).toBe(content);
    expect(warnings).toHaveLength(1);
  },
);

test('of a stored state that was tampered with the rest counts', () => {
  const first = start();
  first.observe(broken);
  first.close();
  const state = JSON.parse(readFileSync(stored(), 'utf8')) as Record<string, unknown>;
  const entries = [...(state['entries'] as unknown[]), 7, {}, { condition: { kind: 'x', severity: 'odd' } }];
  writeFileSync(stored(), JSON.stringify({ ...state, entries, cards: 'none', xids: [1], counters: [2] }));
  expect(kinds(start())).toEqual(['row_remap_failed']);
});

test('everything of the state survives being stored', () => {
  const first = start();
  first.observe(anObservation({ holders: { [cardA]: taskOfJob('a') } }));
  first.kernelRecord(aRecord(1, xid(31)), false);
  first.xid({ gpuUuid: cardB, xid: 63 });
  first.observe(broken);
  first.fileSystems([{ path: '/data', isDataDir: true, space: null, readOnly: false, failure: null }]);
  first.close();
  const before = new ConditionStore(directory, log).load();
  if (before === null) throw new Error('nothing was stored');
  new ConditionStore(directory, log).save(before);
  expect(new ConditionStore(directory, log).load()).toEqual(before);
  expect(before.state.entries.size).toBe(3);
  expect(before.state.programFaults).toHaveLength(1);
  expect(before.state.writablePaths).toEqual(new Set(['/data']));
  expect(before.state.counters.size).toBe(2);
});

test('a disk that cannot be written to is reported once, and stops nothing', () => {
  const monitor = start();
  // A directory in the place of the file that is written first.
  mkdirSync(`${stored()}.tmp`);
  for (let minute = 0; minute < 3; minute += 1) {
    time.pass(60_000);
    monitor.observe(minute === 1 ? anObservation() : broken);
    monitor.tick();
  }
  expect(warnings.filter((message) => message.startsWith('conditions cannot be stored'))).toHaveLength(1);
  expect(kinds(monitor)).toEqual(['row_remap_failed']);
});

test('a day of readings grows nothing', () => {
  const monitor = start();
  const sizes: number[] = [];
  for (let second = 0; second < 86_400; second += 10) {
    time.pass(10_000);
    const throttled = second % 3_600 < 600 ? 0x40 : 0;
    const values = {
      clockEventReasons: throttled,
      pcieReplays: Math.floor(second / 100),
      energyMillijoules: second,
    };
    monitor.observe(anObservation({ samples: [aSample(cardA, values), aSample(cardB, values)] }));
    if (second % 60 === 0) monitor.kernelRecord(aRecord(second, xid(31)), false);
    if (second % 3_600 === 0) {
      monitor.close();
      sizes.push(readFileSync(stored()).length);
    }
  }
  const [, early = 0] = sizes;
  expect(Math.max(...sizes)).toBeLessThan(Math.max(early, 60_000) * 2);
  expect(monitor.conditions().length).toBeLessThan(10);
});

test('put together: the kernel log and the disk become conditions', async () => {
  const kernelLog = join(directory, 'kmsg');
  writeFileSync(kernelLog, `4,1,1000,-;${xid(48)}\n`);
  const health = await startHealth({
    dataDir: directory,
    kernelLog,
    conditionTable: null,
    // Not a folder, so that what is behind it cannot be asked for its space.
    paths: [join(kernelLog, 'behind')],
    probeHelpers: async () => ({
      guard: { state: 'absent', detail: '' },
      engine: { state: 'absent', detail: '' },
    }),
    bootId: 'boot-1',
    now: time.now,
    onKernelRecord: () => {},
    log,
  });
  try {
    expect(health.kernelLogState()).toEqual({ kind: 'reading', overruns: 0 });
    health.monitor.observe(anObservation());
    appendFileSync(kernelLog, `4,2,2000,-;${xid(31)}\n`);
    await vi.waitFor(() => expect(kinds(health.monitor)).toEqual(['xid_48', 'mount_unreachable', 'xid_31']), {
      interval: 20,
    });
  } finally {
    health.close();
  }
  expect(health.kernelLogState()).toEqual({ kind: 'closed' });
  expect(readFileSync(stored(), 'utf8')).toContain('xid_31');
});
