/** Xids and SXids: what each means, what counts once, whose fault it is. */
import type { ConditionAction } from '@muster/common/conditions';
import { bareGpu } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { aSample, cardA, cardB, gpuA, HealthNode, moment, pciA, taskOfJob } from './healthFixture.ts';

const hour = 3_600_000;

/** Two cards are listed. */
const aNode = () => new HealthNode().reads();

const actions: Readonly<Record<ConditionAction, readonly number[]>> = {
  blame_job: [
    8, 11, 13, 25, 31, 32, 39, 41, 43, 45, 60, 68, 69, 70, 72, 75, 77, 80, 82, 86, 88, 89, 96, 105, 126, 135,
    139,
  ],
  reset_when_idle: [63, 94],
  drain_gpu: [
    46, 48, 54, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 142, 143, 155, 156, 158, 167, 171, 172,
  ],
  drain_node: [79, 151],
  note: [14, 37, 38, 66, 67, 78, 92, 93, 106, 107, 121, 137, 141, 152, 153, 157, 160, 161, 999],
};

test.each(Object.entries(actions).flatMap(([action, xids]) => xids.map((xid) => [xid, action] as const)))(
  'Xid %i: %s',
  (xid, action) => {
    const node = aNode();
    node.runs('a').xid(xid);
    expect(node.conditions).toMatchObject([
      { kind: `xid_${xid}`, action, gpuUuid: cardA, count: 1, task: taskOfJob('a') },
    ]);
    expect(node.conditions[0]?.message).toContain('GPU 0 (0000:1b:00.0)');
    expect(node.conditions[0]?.message).toContain(String(xid));
    expect(node.conditions[0]?.evidence).toBe(`NVRM: Xid (PCI:0000:1b:00): ${xid}, something`);
  },
);

test.each([144, 145, 146, 147, 148, 149, 150])('Xid %i is grave only when it is fatal', (xid) => {
  const fatal = aNode().xid(xid, 'NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x0)');
  expect(fatal.conditions).toMatchObject([{ kind: `xid_${xid}_fatal`, action: 'drain_gpu' }]);
  const harmless = aNode().xid(xid, 'NETIR_LINK_EVT  Nonfatal   XC0 i0 Link 01 (0x0)');
  expect(harmless.conditions).toMatchObject([{ kind: `xid_${xid}`, action: 'note' }]);
});

test.each([
  [12020, 'Non-fatal', 'drain_node'],
  [22003, 'Non-fatal', 'drain_node'],
  [23017, 'Non-fatal', 'drain_node'],
  [20034, 'Fatal', 'drain_node'],
  [20034, 'Non-fatal', 'note'],
  [19084, 'Non-fatal', 'drain_node'],
  [11012, 'Non-fatal', 'note'],
  [31999, 'Non-fatal', 'note'],
])('SXid %i, %s: %s', (sxid, severity, action) => {
  const node = aNode().prints(
    `nvidia-nvswitch1: SXid (PCI:0000:06:00.0): ${sxid}, ${severity}, Link 48 fault`,
  );
  expect(node.conditions).toMatchObject([{ action, gpuUuid: null }]);
});

// ---- Counting once

test('an Xid that NVML announces and the kernel prints counts once, whichever comes first', () => {
  const rest = 'pid=5, name=trainer, Ch 1';
  for (const node of [aNode().announces(31).xid(31, rest), aNode().xid(31, rest).announces(31)]) {
    expect(node.counts).toEqual({ xid_31: 1 });
    expect(node.conditions[0]?.evidence).toContain('pid=5');
  }
  expect(aNode().xid(31).announces(31).xid(31).announces(31).announces(31).counts).toEqual({ xid_31: 3 });
  expect(aNode().xid(31).after(10_000).announces(31).counts).toEqual({ xid_31: 2 });
  expect(aNode().xid(31).announces(31, cardB).conditions).toHaveLength(2);
});

test('the kernel tells more of an Xid than NVML: the better knowledge replaces the lesser', () => {
  const node = aNode().announces(149);
  expect(node.counts).toEqual({ xid_149: 1 });
  node.xid(149, 'NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x0)');
  expect(node.counts).toEqual({ xid_149_fatal: 1 });
});

test('an announced Xid of a MIG instance is of its card', () => {
  const mig = { parentUuid: cardA, profile: '1g.10gb', gpuInstanceId: 1, computeInstanceId: 0 };
  const node = aNode().reads({ gpus: [{ ...bareGpu('MIG-1'), pciBusId: pciA, mig }] });
  expect(node.announces(48, 'MIG-1').conditions).toContainEqual(
    expect.objectContaining({ kind: 'xid_48', gpuUuid: cardA }),
  );
});

test('follow-ups of a process belong to its first Xid', () => {
  const node = aNode().xid(31, 'pid=5, name=a, Ch 1').after(60_000);
  expect(node.xid(43, 'pid=5, name=a, Ch 1').xid(45, 'pid=5, name=a, Ch 1').counts).toEqual({ xid_31: 1 });
  expect(node.xid(43, 'pid=6, name=b, Ch 1').counts).toEqual({ xid_31: 1, xid_43: 1 });
});

test('a follow-up of a process that is not named belongs to the Xid just before', () => {
  const node = aNode().xid(13, "pid='<unknown>', name=<unknown>, Graphics Exception");
  expect(node.xid(43, 'pid=9, name=a, Ch 1').announces(43).counts).toEqual({ xid_13: 1 });
  expect(node.after(10_000).xid(43, 'pid=9, name=a, Ch 1').counts).toEqual({ xid_13: 1, xid_43: 1 });
});

test('the line about a lost GPU that comes with Xid 79 is no second condition', () => {
  const gone = 'NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.';
  expect(aNode().xid(79).prints(gone).counts).toEqual({ xid_79: 1 });
  expect(aNode().prints(gone).conditions).toMatchObject([
    { kind: 'gpu_fallen_off', action: 'drain_node', gpuUuid: cardA },
  ]);
});

// ---- Whose fault

test('of several tasks on the instances of a card the one whose process it was is to blame', () => {
  const instance = (uuid: string, gpuInstanceId: number) => ({
    ...bareGpu(uuid),
    pciBusId: pciA,
    mig: { parentUuid: cardA, profile: '1g.10gb', gpuInstanceId, computeInstanceId: 0 },
  });
  const node = aNode().reads({
    gpus: [instance('MIG-1', 1), instance('MIG-2', 2)],
    samples: [
      aSample('MIG-1', { processes: [{ pid: 5, memoryMb: null }] }),
      aSample('MIG-2', { processes: [{ pid: 6, memoryMb: null }] }),
    ],
    holders: { 'MIG-1': taskOfJob('a'), 'MIG-2': taskOfJob('b') },
  });
  const taskOf = (kind: string) => node.conditions.find((condition) => condition.kind === kind)?.task;
  node.xid(31, 'pid=6, name=b, Ch 1').xid(13, 'Graphics Exception');
  expect(taskOf('xid_31')).toEqual(taskOfJob('b'));
  expect(taskOf('xid_13')).toBeNull();
});

test('faults of the programs of two jobs on one GPU, and on no other, are the fault of the GPU', () => {
  const node = aNode().runs('a').xid(13).xid(31).after(hour).xid(13);
  expect(node.kinds).not.toContain('hardware_suspected');
  node.runs('b').xid(31);
  expect(node.conditions).toContainEqual(
    expect.objectContaining({
      kind: 'hardware_suspected',
      gpuUuid: cardA,
      action: 'drain_gpu',
      clears: 'by_hand',
    }),
  );
  // Cleared by hand: the history of the GPU is forgotten with it.
  node.takes({ kind: 'clear', conditionKind: 'hardware_suspected', gpuUuid: cardA }).xid(13);
  expect(node.kinds).not.toContain('hardware_suspected');
});

test('faults on other GPUs too, or too long ago, prove nothing', () => {
  const elsewhere = aNode().runs('a').announces(13, cardB).xid(13).runs('b').xid(13);
  expect(elsewhere.kinds).not.toContain('hardware_suspected');
  const longAgo = aNode()
    .runs('a')
    .xid(13)
    .after(25 * hour)
    .runs('b')
    .xid(13);
  expect(longAgo.kinds).not.toContain('hardware_suspected');
});

test('faults on the only GPU prove nothing', () => {
  const holding = (job: string) => ({ gpus: [gpuA], holders: { [cardA]: taskOfJob(job) } });
  const node = new HealthNode().reads(holding('a')).xid(13).reads(holding('b')).xid(13);
  expect(node.counts).toEqual({ xid_13: 2 });
});

test('what is back after two reboots in a row is the hardware', () => {
  const node = aNode().xid(79).starts('boot-2').xid(79).starts('boot-3');
  expect(node.counts).not.toHaveProperty('hardware_suspected');
  expect(node.xid(79).counts).toHaveProperty('hardware_suspected');
  const between = aNode().xid(79).starts('boot-2').starts('boot-3').xid(79).starts('boot-4').xid(79);
  expect(between.counts).not.toHaveProperty('hardware_suspected');
});

// ---- What the driver asks for

test('Xid 154 says what the driver asks for', () => {
  const changed = (from: string, to: string) => `GPU recovery action changed from ${from} to ${to}`;
  const node = aNode().xid(154, changed('0x0 (None)', '0x4 (Drain and Reset)'));
  expect(node.conditions).toMatchObject([{ kind: 'gpu_recovery_drain_and_reset', action: 'drain_gpu' }]);
  node.xid(154, changed('0x4 (Drain and Reset)', '0x1 (GPU Reset Required)')).after(60_000);
  expect(node.counts).toEqual({ gpu_recovery_gpu_reset: 1 });
  node.xid(154, changed('0x1 (GPU Reset Required)', '0x0 (None)')).after(60_000);
  expect(node.conditions).toEqual([]);
});

test('a driver that, asked after an Xid, needs nothing outranks the table; one that needs a reset does not', () => {
  const node = aNode().samples({ recoveryAction: 0 }).xid(119);
  expect(node.conditions).toMatchObject([{ kind: 'xid_119', action: 'drain_gpu' }]);
  // Read too soon: the driver may not have come to its decision.
  expect(node.after(1_000).samples({ recoveryAction: 0 }).conditions).toMatchObject([
    { action: 'drain_gpu' },
  ]);
  expect(node.after(5_000).samples({ recoveryAction: 0 }).conditions).toMatchObject([
    { kind: 'xid_119', action: 'note' },
  ]);
  node.samples({ recoveryAction: 1 });
  expect(node.conditions.every(({ action }) => action === 'drain_gpu')).toBe(true);
  // It was reset.
  expect(node.after(1_000).samples({ recoveryAction: 0 }).after(60_000).conditions).toEqual([]);
});

// ---- From before

test('the log of before the agent started blames nobody, and what is long over is no condition', () => {
  const node = aNode()
    .runs('a')
    .after(10 * hour);
  node.prints('NVRM: Xid (PCI:0000:1b:00): 31, x', 1_000).prints('NVRM: Xid (PCI:0000:1b:00): 48, x', 1_000);
  expect(node.conditions).toMatchObject([{ kind: 'xid_48', task: null, sinceMs: moment(1_000).wallMs }]);
});

test('an Xid of a card that was never listed is reported, and keeps no GPU from work', () => {
  const node = aNode().prints('NVRM: Xid (PCI:0000:ee:00): 48, x');
  expect(node.conditions).toMatchObject([{ kind: 'xid_48', gpuUuid: null, action: 'note' }]);
  expect(node.conditions[0]?.message).toContain('the GPU at 0000:ee:00');
});

test('a flood of made-up Xids fills no memory, and what keeps work away outlasts it', () => {
  const node = aNode().xid(79);
  for (let number = 1_000; number < 3_000; number += 1) node.xid(number);
  expect(node.state.entries.size).toBeLessThanOrEqual(400);
  expect(node.state.xids.length).toBeLessThanOrEqual(256);
  expect(node.conditions[0]).toMatchObject({ kind: 'xid_79', action: 'drain_node' });
});
