/** The memory that a test and the fake library share: 64-bit numbers, so that both sides only count positions. */
import { functionNames } from '../../../packages/agent/src/gpus/nvml/functions.ts';

export const cardsMax = 16;

/** Stands for a value that this card does not have. */
export const notSupported = -(2n ** 63n);

/** What every call of one function does instead of answering; a positive number is a return code. */
export const behaviours = { answer: 0, hang: -1, crash: -2 } as const;

export const globals = [
  'cardCount',
  'cudaVersion',
  'driverMajor',
  'libraryNanoseconds',
  'eventPollMs',
] as const;

export const values = [
  'present',
  'memoryTotalMb',
  'memoryUsedMb',
  'memoryFreeMb',
  'memoryReservedMb',
  'utilization',
  'memoryUtilization',
  'encoderUtilization',
  'decoderUtilization',
  'temperature',
  'memoryTemperature',
  'powerMilliwatts',
  'powerLimitMilliwatts',
  'energyMillijoules',
  'smClockMhz',
  'memoryClockMhz',
  'clockEventReasons',
  'pcieReplays',
  'eccCorrectedVolatile',
  'eccUncorrectedVolatile',
  'eccCorrectedAggregate',
  'eccUncorrectedAggregate',
  'sramThresholdExceeded',
  'rowsCorrectable',
  'rowsUncorrectable',
  'rowsPending',
  'rowsFailed',
  'pagesSingleBit',
  'pagesDoubleBit',
  'pagesPending',
  'recoveryAction',
  'pcieTxBytes',
  'pcieRxBytes',
  'nvlinkTxKib',
  'nvlinkRxKib',
  'counterType',
  'counterMicros',
  'linkReplays',
  'linkRecoveries',
  'linkCrcErrors',
  'switchLinks',
  /** Links to the card of the same pair: 0 and 1, 2 and 3 … */
  'pairLinks',
  'numaNode',
  'cpuFirst',
  'cpuLast',
  'migMode',
  /** A bit per slot that holds an instance. */
  'migSlots',
  'gpmSupported',
  'gpmPercent',
  'gpmMebibytes',
  'processCount',
  'processPid',
  'processMemoryMb',
  'xid',
  /** Counts up with every Xid to announce. */
  'xidCount',
] as const;

export type GlobalName = (typeof globals)[number];
export type ValueName = (typeof values)[number];

const functionCount = functionNames.length;
const costsAt = globals.length;
const behavioursAt = costsAt + functionCount;
/** One row more than there are cards: for calls that are about none. */
const valuesAt = behavioursAt + (cardsMax + 1) * functionCount;
const callsAt = valuesAt + cardsMax * values.length;
const wordCount = callsAt + functionCount;

export const stateBytes = wordCount * 8;

export const positionOf = {
  global: (name: GlobalName) => globals.indexOf(name),
  /** Microseconds of CPU time that a call takes. */
  cost: (functionNumber: number) => costsAt + functionNumber,
  /** Counts the calls of one function. */
  calls: (functionNumber: number) => callsAt + functionNumber,
  /** @param card null: calls that are about no card */
  behaviour: (functionNumber: number, card: number | null) =>
    behavioursAt + (card ?? cardsMax) * functionCount + functionNumber,
  value: (card: number, name: ValueName) => valuesAt + card * values.length + values.indexOf(name),
} as const;

/** The same for the C compiler. */
export function layoutHeader(): string {
  const define = (prefix: string) => (name: string, index: number) => `#define ${prefix}_${name} ${index}`;
  return [
    ...globals.map(define('GLOBAL')),
    ...values.map(define('VALUE')),
    ...functionNames.map(define('FUNCTION')),
    `#define FUNCTION_COUNT ${functionCount}`,
    `#define CARDS_MAX ${cardsMax}`,
    `#define VALUE_COUNT ${values.length}`,
    `#define COSTS_AT ${costsAt}`,
    `#define BEHAVIOURS_AT ${behavioursAt}`,
    `#define VALUES_AT ${valuesAt}`,
    `#define CALLS_AT ${callsAt}`,
    `#define STATE_BYTES ${stateBytes}`,
    '',
  ].join('\n');
}
