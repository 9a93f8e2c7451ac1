/** Puts the parts of the node's health together and lets them run. */
import type { Logger } from '@muster/common/log';
import { ConditionStore } from './conditionStore.ts';
import { type ConditionTable, defaultConditionTable } from './conditionTable.ts';
import { probeFileSystems } from './fileSystems.ts';
import { KernelLog, type KernelLogState, type KernelRecord } from './kernelLog.ts';
import { HealthMonitor } from './monitor.ts';
import type { Moment } from './state.ts';

const tickIntervalMs = 1_000;
const fileSystemIntervalMs = 30_000;
const fileSystemDeadlineMs = 10_000;

export interface HealthParts {
  /** Absolute, exists. */
  readonly dataDir: string;
  readonly kernelLog: string;
  /** A file that changes the table of conditions; null: the built-in table. */
  readonly conditionTable: string | null;
  /** Further paths whose file systems are watched, absolute. */
  readonly paths: readonly string[];
  readonly bootId: string;
  readonly now: () => Moment;
  /** Gets each record of the kernel log, also those from before the start. */
  readonly onKernelRecord: (record: KernelRecord) => void;
  readonly log: Logger;
}

export interface HealthWatch {
  readonly monitor: HealthMonitor;
  kernelLogState(): KernelLogState;
  /** Takes in what the kernel log has by now. */
  readKernelLog(): void;
  close(): void;
}

/** @throws {MusterError} for a table of conditions that is not valid */
export async function startHealth(parts: HealthParts): Promise<HealthWatch> {
  const { dataDir, paths, log, bootId, now } = parts;
  const table = await loadConditionTable(parts.conditionTable);
  const monitor = new HealthMonitor({ table, store: new ConditionStore(dataDir, log), bootId, now, log });
  const kernelLog = new KernelLog({
    path: parts.kernelLog,
    onRecord: (record, history) => {
      monitor.kernelRecord(record, history);
      parts.onKernelRecord(record);
    },
    log,
  });
  let closed = false;
  let probing = false;
  const lookAtFileSystems = () => {
    if (probing) return;
    probing = true;
    probeFileSystems({ dataDir, paths, deadlineMs: fileSystemDeadlineMs })
      .then((facts) => {
        if (!closed) monitor.fileSystems(facts);
      })
      .finally(() => {
        probing = false;
      })
      .catch((error: unknown) => log.error({ err: error }, 'the file systems could not be looked at'));
  };

  kernelLog.open();
  lookAtFileSystems();
  const timers = [
    setInterval(() => monitor.tick(), tickIntervalMs),
    setInterval(lookAtFileSystems, fileSystemIntervalMs),
  ];
  return {
    monitor,
    kernelLogState: () => kernelLog.state,
    readKernelLog: () => kernelLog.readNow(),
    close: () => {
      closed = true;
      for (const timer of timers) clearInterval(timer);
      kernelLog.close();
      monitor.close();
    },
  };
}

/**
 * The table of conditions, with the changes of the operator's file. @param path null: the built-in table
 * @throws {MusterError} naming every problem of the file at once
 */
export async function loadConditionTable(path: string | null): Promise<ConditionTable> {
  if (path === null) return defaultConditionTable;
  // Loaded only here: zod and YAML are a fifth of the agent's memory, and few nodes have such a file.
  const { readConditionTable } = await import('./tableFile.ts');
  return readConditionTable(path);
}
