/**
 * What each Xid and SXid means for new work. The sources disagree in places, so all of it can be changed by the
 * operator's table of conditions.
 */
import type { ConditionRow } from './conditionTable.ts';

const hourMs = 3_600_000;

const programFault: ConditionRow = {
  severity: 'info',
  action: 'blame_job',
  clears: 'when_quiet',
  quietMs: hourMs,
  raiseAfterMs: 0,
  message: '{gpu} reported Xid {number}: a fault of the program that ran there; see the output of its job',
};

const noted: ConditionRow = {
  ...programFault,
  action: 'note',
  message: '{gpu} reported Xid {number}: for information, no action needed',
};

const resetWhenIdle: ConditionRow = {
  severity: 'warning',
  action: 'reset_when_idle',
  clears: 'by_reboot',
  quietMs: 0,
  raiseAfterMs: 0,
  message:
    '{gpu} reported Xid {number}: a memory error that was contained; reset the GPU when nothing runs on it',
};

const drainGpu: ConditionRow = {
  ...resetWhenIdle,
  severity: 'critical',
  action: 'drain_gpu',
  message: '{gpu} reported Xid {number} and gets no new work; reset the GPU',
};

const drainNode: ConditionRow = {
  ...drainGpu,
  action: 'drain_node',
  message: '{gpu} reported Xid {number} and the node gets no new work; reboot the node',
};

const inspect: ConditionRow = {
  ...drainGpu,
  clears: 'by_hand',
  message: '{gpu} reported Xid {number}; have the hardware inspected, then clear the condition',
};

const programFaults = [
  8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88,
  89, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 139,
];
const needReset = [46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158];
const harmless = [14, 37, 38, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153, 154, 157, 160, 161];
/** `Nonfatal` or fatal, as the line names it. */
const nvlink5 = [144, 145, 146, 147, 148, 149, 150];

const fatalSwitch: ConditionRow = {
  ...drainNode,
  message:
    'an NVSwitch reported the fatal SXid {number} and the node gets no new work; reset all its GPUs and switches',
};
const harmlessSwitch: ConditionRow = {
  ...noted,
  message: 'an NVSwitch reported SXid {number}: for information, no action needed',
};
const fatalSxids = [12020, 22003, 22011, ...Array.from({ length: 17 }, (_, index) => 23001 + index)];
const harmlessSxids = [11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 20001, 22013];

export const xidRows: Readonly<Record<string, ConditionRow>> = {
  ...rows('xid_', programFaults, programFault),
  ...rows('xid_', harmless, noted),
  ...rows('xid_', needReset, drainGpu),
  ...rows('xid_', nvlink5, noted),
  ...Object.fromEntries(nvlink5.map((number) => [`xid_${number}_fatal`, drainGpu])),
  xid_63: {
    ...resetWhenIdle,
    message:
      '{gpu} reported Xid 63: a memory row or page needs replacement; reset the GPU when nothing runs on it',
  },
  xid_94: resetWhenIdle,
  xid_74: {
    ...drainGpu,
    message: '{gpu} reported Xid 74: an NVLink failed; look at the GPU at its other end too, and reset both',
  },
  xid_78: {
    ...noted,
    severity: 'warning',
    message: '{gpu} reported Xid 78: the vGPU software is of another version',
  },
  xid_79: { ...drainNode, message: '{gpu} has fallen off the bus (Xid 79); reboot the node' },
  xid_151: { ...drainNode, message: '{gpu} reported Xid 151; restart the virtual machine' },
  xid_54: {
    ...inspect,
    message: '{gpu} reported Xid 54: check its auxiliary power cable, then clear the condition',
  },
  xid_142: inspect,
  xid_167: inspect,
  xid_171: inspect,
  xid_172: inspect,
  xid_other: {
    ...noted,
    severity: 'warning',
    message: '{gpu} reported Xid {number}, which the table of conditions has no row for',
  },
  ...rows('sxid_', fatalSxids, fatalSwitch),
  ...rows('sxid_', harmlessSxids, harmlessSwitch),
  sxid_19084: { ...fatalSwitch, message: 'an NVSwitch reported SXid 19084; reboot the node' },
  sxid_fatal: fatalSwitch,
  sxid_other: {
    ...harmlessSwitch,
    severity: 'warning',
    message: 'an NVSwitch reported SXid {number}, which the table of conditions has no row for',
  },
};

function rows(prefix: string, numbers: readonly number[], row: ConditionRow) {
  return Object.fromEntries(numbers.map((number) => [`${prefix}${number}`, row]));
}
