/** Puts the parts of the node's health together and lets them run. */
import type { Logger } from '@muster/common/log';
import { ConditionStore } from './conditionStore.ts';
import { type ConditionTable, defaultConditionTable } from './conditionTable.ts';
import { probeFileSystems } from './fileSystems.ts';
import type { HelperFacts } from './helpers.ts';
import { KernelLog, type KernelLogState, type KernelRecord } from './kernelLog.ts';
import { HealthMonitor } from './monitor.ts';
import type { Moment } from './state.ts';

const tickIntervalMs = 1_000;
const fileSystemIntervalMs = 30_000;
const fileSystemDeadlineMs = 10_000;
const helperIntervalMs = 2_000;

export interface HealthParts {
  /** Absolute, exists. */
  readonly dataDir: string;
  readonly kernelLog: string;
  /** A file that changes the table of conditions; null: the built-in table. */
  readonly conditionTable: string | null;
  /** Further paths whose file systems are watched, absolute. */
  readonly paths: readonly string[];
  /** Asks the guard and the container engine whether they answer, within a time of its own. */
  readonly probeHelpers: () => Promise<HelperFacts>;
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
  /** A look that is under way when the next is due stands for both. */
  const looking = <T>(what: string, probe: () => Promise<T>, take: (facts: T) => void) => {
    let isLooking = false;
    return () => {
      if (isLooking) return;
      isLooking = true;
      probe()
        .then((facts) => {
          if (!closed) take(facts);
        })
        .finally(() => {
          isLooking = false;
        })
        .catch((error: unknown) => log.error({ err: error }, `${what} could not be looked at`));
    };
  };
  const lookAtFileSystems = looking(
    'the file systems',
    () => probeFileSystems({ dataDir, paths, deadlineMs: fileSystemDeadlineMs }),
    (facts) => monitor.fileSystems(facts),
  );
  const lookAtHelpers = looking('the guard and the container engine', parts.probeHelpers, (facts) =>
    monitor.helpers(facts),
  );

  kernelLog.open();
  lookAtFileSystems();
  const timers = [
    setInterval(() => monitor.tick(), tickIntervalMs),
    setInterval(lookAtFileSystems, fileSystemIntervalMs),
    setInterval(lookAtHelpers, helperIntervalMs),
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
