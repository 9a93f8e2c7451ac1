/** Conditions that are read from values and states, rather than announced by a number. */
import type { ConditionRow } from './conditionTable.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const warning: ConditionRow = {
  severity: 'warning',
  action: 'note',
  clears: 'when_gone',
  quietMs: minuteMs,
  raiseAfterMs: 0,
  message: '',
};
const growing: ConditionRow = { ...warning, clears: 'when_quiet', quietMs: hourMs };
const drainGpu: ConditionRow = { ...warning, severity: 'critical', action: 'drain_gpu' };
const drainNode: ConditionRow = { ...drainGpu, action: 'drain_node' };
/**
 * A driver that failed is listed again within 30 s of its recovery (`telemetry/sampler.ts`) and read every 5 s at the
 * longest. With this much time to prove itself, its GPUs take work again within a minute of the recovery.
 */
const drivenAgain = { quietMs: 15_000 };
/** A helper that is only slow, on a machine whose processors are all taken, answers within this time. */
const silentMs = 5_000;
const resetWhenIdle: ConditionRow = { ...warning, action: 'reset_when_idle' };

export const levelRows = {
  ecc_uncorrectable: {
    ...resetWhenIdle,
    severity: 'critical',
    clears: 'by_reboot',
    message:
      '{gpu} has memory errors that could not be corrected ({detail}); reset the GPU when nothing runs on it',
  },
  ecc_corrected_storm: {
    ...growing,
    message: '{gpu} corrects many memory errors ({detail}); watch it, and replace it if they continue',
  },
  row_remap_pending: {
    ...resetWhenIdle,
    message: '{gpu} will replace a row of its memory; reset the GPU when nothing runs on it',
  },
  row_remap_failed: {
    ...drainGpu,
    message: '{gpu} could not replace a broken row of its memory; have the card replaced',
  },
  retired_pages_pending: {
    ...resetWhenIdle,
    message: '{gpu} will retire a page of its memory; reset the GPU when nothing runs on it',
  },
  retired_pages_limit: {
    ...drainGpu,
    message: '{gpu} has retired {detail} of its memory, close to the limit of 64; have the card replaced',
  },
  sram_threshold_exceeded: {
    ...drainGpu,
    message: '{gpu} reports too many errors in its SRAM; have the card replaced',
  },
  nvlink_errors: {
    ...growing,
    message: '{gpu} has growing errors on its NVLinks ({detail}); check links and switches',
  },
  pcie_replays: {
    ...growing,
    message:
      '{gpu} has to repeat transfers over PCIe ({detail}); check how the card is seated, and its riser',
  },
  thermal_throttling: {
    ...warning,
    raiseAfterMs: 10_000,
    message: '{gpu} is too hot and runs slower ({detail}); check fans and air flow',
  },
  power_brake: {
    ...warning,
    raiseAfterMs: 10_000,
    message: '{gpu} is slowed down by the hardware ({detail}); check power supplies and their cables',
  },
  gpu_recovery_gpu_reset: {
    ...drainGpu,
    message: '{gpu} gets no new work: the driver asks for a reset of the GPU',
  },
  gpu_recovery_node_reboot: {
    ...drainNode,
    message: '{gpu}: the driver asks for a reboot of the node, which gets no new work',
  },
  gpu_recovery_drain_p2p: {
    ...drainGpu,
    message: '{gpu} gets no new work: the driver asks to end everything that moves data between GPUs there',
  },
  gpu_recovery_drain_and_reset: {
    ...drainGpu,
    message: '{gpu} gets no new work: the driver asks for a reset of the GPU once its jobs have ended',
  },
  gpu_recovery_imex_domain: {
    ...drainNode,
    message: '{gpu}: the driver asks to recover the IMEX domain of the node, which gets no new work',
  },
  gpu_recovery_other: {
    ...drainGpu,
    message: '{gpu} gets no new work: the driver asks for a recovery that is not known here ({detail})',
  },
  gpu_fallen_off: {
    ...drainNode,
    clears: 'by_reboot',
    message: '{gpu} has fallen off the bus and the node gets no new work; reboot the node',
  },
  gsp_errors: {
    ...drainGpu,
    clears: 'by_reboot',
    message: '{gpu} gets no new work: its system processor does not answer the driver; reset the GPU',
  },
  gpu_lost: {
    ...drainGpu,
    ...drivenAgain,
    message: '{gpu} is lost to the driver and gets no new work; reboot the node ({detail})',
  },
  gpu_reset_required: {
    ...drainGpu,
    ...drivenAgain,
    message: '{gpu} gets no new work until it is reset ({detail})',
  },
  gpu_hung: {
    ...drainGpu,
    ...drivenAgain,
    message:
      '{gpu} is suspect and gets no new work: the driver does not answer ({detail}); see the kernel log',
  },
  gpu_unknown_error: {
    ...drainGpu,
    ...drivenAgain,
    raiseAfterMs: 30_000,
    message:
      '{gpu} gets no new work: the driver keeps failing without a reason ({detail}); see the kernel log',
  },
  gpu_unreadable: {
    ...warning,
    message:
      '{gpu} cannot be monitored: answers of the driver cannot be parsed ({detail}); run muster doctor',
  },
  gpu_without_instances: {
    ...warning,
    message:
      '{gpu} is in MIG mode without instances and takes no work; make some with nvidia-smi mig, or turn MIG off',
  },
  gpu_hidden: {
    ...drainGpu,
    ...drivenAgain,
    message:
      '{gpu} gets no new work while its driver shows no GPU because of another one; nothing is known to be wrong with it ({detail})',
  },
  gpu_missing: {
    ...drainGpu,
    ...drivenAgain,
    message: '{gpu} was listed before and is missing now; reboot the node, or clear this if it was removed',
  },
  gpu_no_permission: {
    ...warning,
    message:
      '{gpu} cannot be monitored: the agent may not open its device ({detail}); see the rules of its service',
  },
  driver_mismatch: {
    ...drainNode,
    ...drivenAgain,
    message:
      'the NVIDIA driver was changed under the running kernel ({detail}); reload its module or reboot the node',
  },
  driver_not_loaded: {
    ...drainNode,
    ...drivenAgain,
    message: 'the NVIDIA driver is not loaded ({detail}); load its kernel module',
  },
  hardware_suspected: {
    ...drainGpu,
    clears: 'by_hand',
    message: '{gpu} is probably broken ({detail}); have the hardware inspected, then clear the condition',
  },
  clock_skew: {
    ...warning,
    message: 'the clock of this node differs from the coordinator by {detail}; check its time service',
  },
  checkpoint_directory: {
    ...warning,
    message:
      'the checkpoints of a job are not safe ({detail}); fix the directory, or set another one in its spec',
  },
  disk_full: {
    ...drainNode,
    message: 'the disk of the agent is full ({detail}) and the node gets no new work; free some space',
  },
  disk_read_only: {
    ...drainNode,
    message:
      'the disk of the agent cannot be written to ({detail}) and the node gets no new work; see the kernel log',
  },
  disk_unreachable: {
    ...drainNode,
    message:
      'the disk of the agent does not answer ({detail}) and the node gets no new work; see the kernel log',
  },
  guard_silent: {
    ...drainNode,
    raiseAfterMs: silentMs,
    quietMs: 0,
    message:
      'the guard of this node does not answer ({detail}) and the node gets no new work; running tasks continue and can be stopped',
  },
  engine_silent: {
    ...warning,
    raiseAfterMs: silentMs,
    quietMs: 0,
    message:
      'the container engine of this node does not answer ({detail}) and the node gets no new containers; see journalctl -u docker',
  },
  mount_full: { ...warning, message: 'a file system is full: {detail}; free some space' },
  mount_read_only: {
    ...warning,
    message: 'a file system is no longer writable: {detail}; see the kernel log',
  },
  mount_unreachable: {
    ...warning,
    message: 'a file system does not answer: {detail}; check its server or disk',
  },
} as const satisfies Readonly<Record<string, ConditionRow>>;

export type LevelKind = keyof typeof levelRows;
