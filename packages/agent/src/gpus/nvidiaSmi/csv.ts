/**
 * `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`, for example
 *
 *     0, GPU-5ab1c2d3-…, 97, [N/A], 61, 480.12
 *
 * One field that this nvidia-smi does not know fails the whole call, so the names are first taken from its own
 * `--help-query-gpu`. Cells are not quoted: a row counts only when it has as many as fields were asked for.
 */
import { type GpuProblem, type GpuProcess, type GpuSample, unlessAllAbsent } from '../gpuSource.ts';
import {
  type CellFault,
  faultOf,
  readAmount,
  readCelsius,
  readCount,
  readFlag,
  readMask,
  readPciBusId,
  readPercent,
  readRecoveryAction,
  readUuid,
} from './cells.ts';
import { cardProblem } from './nvidiaSmi.ts';

/** What we want to know => the names it goes by, best first. Drivers rename fields and keep some old names. */
const wantedFields = {
  uuid: ['uuid', 'gpu_uuid'],
  pciBusId: ['pci.bus_id', 'gpu_bus_id'],
  utilization: ['utilization.gpu'],
  memoryUtilization: ['utilization.memory'],
  encoderUtilization: ['utilization.encoder'],
  decoderUtilization: ['utilization.decoder'],
  memoryTotal: ['memory.total'],
  memoryUsed: ['memory.used'],
  memoryFree: ['memory.free'],
  memoryReserved: ['memory.reserved'],
  temperature: ['temperature.gpu'],
  memoryTemperature: ['temperature.memory'],
  power: ['power.draw', 'power.draw.average', 'power.draw.instant'],
  powerLimit: ['enforced.power.limit', 'power.limit'],
  smClock: ['clocks.current.sm', 'clocks.sm'],
  memoryClock: ['clocks.current.memory', 'clocks.mem'],
  clockEventReasons: ['clocks_event_reasons.active', 'clocks_throttle_reasons.active'],
  correctedVolatile: ['ecc.errors.corrected.volatile.total'],
  uncorrectedVolatile: ['ecc.errors.uncorrected.volatile.total'],
  correctedAggregate: ['ecc.errors.corrected.aggregate.total'],
  uncorrectedAggregate: ['ecc.errors.uncorrected.aggregate.total'],
  sramThresholdExceeded: ['ecc.errors.uncorrected.aggregate.sram.thresholdExceeded'],
  rowsCorrectable: ['remapped_rows.correctable'],
  rowsUncorrectable: ['remapped_rows.uncorrectable'],
  rowsPending: ['remapped_rows.pending'],
  rowsFailed: ['remapped_rows.failure'],
  pagesSingleBit: ['retired_pages.single_bit_ecc.count', 'retired_pages.sbe'],
  pagesDoubleBit: ['retired_pages.double_bit.count', 'retired_pages.dbe'],
  pagesPending: ['retired_pages.pending'],
  recoveryAction: ['gpu_recovery_action'],
} as const satisfies Record<string, readonly string[]>;

type Quantity = keyof typeof wantedFields;

/** Cells of one card by the name of their field. */
export type CsvRow = ReadonlyMap<string, string>;

export interface CsvTable {
  readonly rows: readonly CsvRow[];
  /** Lines that do not have one cell for each field. */
  readonly refused: readonly string[];
}

/** The fields to query: of what we want, what `--help-query-gpu` names. Empty for a text that is no such help. */
export function fieldsToQuery(help: string): readonly string[] {
  const known = new Set(
    help
      .split('\n')
      .filter((line) => line.startsWith('"'))
      .flatMap((line) => [...line.matchAll(/"([\w.]{1,120})"/g)].map((match) => match[1])),
  );
  return Object.values(wantedFields).flatMap((names) => names.find((name) => known.has(name)) ?? []);
}

/** Without it no row could be assigned to its card. */
export function isUuidField(field: string): boolean {
  return wantedFields.uuid.some((name) => name === field);
}

/** @param fields as they were queried, in their order */
export function parseCsv(text: string, fields: readonly string[]): CsvTable {
  const rows: CsvRow[] = [];
  const refused: string[] = [];
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '') continue;
    const cells = line.split(/, ?/);
    if (cells.length !== fields.length) refused.push(line);
    else rows.push(new Map(fields.map((field, index) => [field, (cells[index] ?? '').trim()])));
  }
  return { rows, refused };
}

/** UUID of the card that the row is about. */
export function uuidOfRow(row: CsvRow): string | null {
  return reader(row)('uuid', readUuid);
}

/** Everything that the row contains; processes, NVLink, PCIe replays and energy are not in it. */
export function sampleOfRow(row: CsvRow, uuid: string): GpuSample {
  const read = reader(row);
  return {
    uuid,
    utilization: read('utilization', readPercent),
    memoryUtilization: read('memoryUtilization', readPercent),
    encoderUtilization: read('encoderUtilization', readPercent),
    decoderUtilization: read('decoderUtilization', readPercent),
    memoryTotalMb: read('memoryTotal', readAmount),
    memoryUsedMb: read('memoryUsed', readAmount),
    memoryFreeMb: read('memoryFree', readAmount),
    memoryReservedMb: read('memoryReserved', readAmount),
    temperature: read('temperature', readCelsius),
    memoryTemperature: read('memoryTemperature', readCelsius),
    powerWatts: read('power', readAmount),
    powerLimitWatts: read('powerLimit', readAmount),
    energyMillijoules: null,
    smClockMhz: read('smClock', readAmount),
    memoryClockMhz: read('memoryClock', readAmount),
    clockEventReasons: read('clockEventReasons', readMask),
    pcieReplays: null,
    nvlinkErrors: null,
    ecc: unlessAllAbsent({
      correctedVolatile: read('correctedVolatile', readCount),
      uncorrectedVolatile: read('uncorrectedVolatile', readCount),
      correctedAggregate: read('correctedAggregate', readCount),
      uncorrectedAggregate: read('uncorrectedAggregate', readCount),
      sramThresholdExceeded: read('sramThresholdExceeded', readFlag),
    }),
    rows: unlessAllAbsent({
      correctable: read('rowsCorrectable', readCount),
      uncorrectable: read('rowsUncorrectable', readCount),
      pending: read('rowsPending', readFlag),
      failed: read('rowsFailed', readFlag),
    }),
    retiredPages: unlessAllAbsent({
      singleBit: read('pagesSingleBit', readCount),
      doubleBit: read('pagesDoubleBit', readCount),
      pending: read('pagesPending', readFlag),
    }),
    recoveryAction: read('recoveryAction', readRecoveryAction),
    activity: null,
    processes: null,
  };
}

/** Faults of the card in the cells of its row, worst first, one problem for each kind of fault. */
export function problemsOfRow(row: CsvRow, uuid: string): readonly GpuProblem[] {
  const pciBusId = reader(row)('pciBusId', readPciBusId);
  const worstFirst: readonly CellFault[] = ['lost', 'reset_required', 'unknown_error'];
  return worstFirst.flatMap((fault) => {
    const cells = [...row].filter(([, cell]) => faultOf(cell) === fault);
    if (cells.length === 0) return [];
    const evidence = cells.map(([field, cell]) => `${field}: ${cell}`).join(', ');
    return [cardProblem(fault, { uuid, pciBusId }, evidence)];
  });
}

export const processFields = ['gpu_uuid', 'pid', 'used_gpu_memory'] as const;

/**
 * Rows of `--query-compute-apps` by the UUID of their card, which is also what stands there for a MIG instance. null: the
 * text is something else, and does not mean that there are none.
 */
export function processesByCard(text: string): ReadonlyMap<string, readonly GpuProcess[]> | null {
  const { rows, refused } = parseCsv(text, processFields);
  if (refused.length > 0) return null;
  const processes = rows.flatMap((row) => {
    const uuid = readUuid(row.get('gpu_uuid'));
    const pid = readCount(row.get('pid'));
    if (uuid === null || pid === null || pid === 0) return [];
    return [{ uuid, process: { pid, memoryMb: readAmount(row.get('used_gpu_memory')) } }];
  });
  const groups = Map.groupBy(processes, ({ uuid }) => uuid);
  return new Map([...groups].map(([uuid, group]) => [uuid, group.map(({ process }) => process)]));
}

type Read = <T>(quantity: Quantity, read: (cell: string | undefined) => T | null) => T | null;

/** Reads a quantity from the first of its fields that has a value. */
function reader(row: CsvRow): Read {
  return (quantity, read) => {
    for (const name of wantedFields[quantity]) {
      const value = read(row.get(name));
      if (value !== null) return value;
    }
    return null;
  };
}
