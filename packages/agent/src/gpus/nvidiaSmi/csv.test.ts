import { describe, expect, test } from 'vitest';
import { emptySample } from '../gpuSource.ts';
import {
  type CsvRow,
  fieldsToQuery,
  parseCsv,
  problemsOfRow,
  processesByCard,
  sampleOfRow,
  uuidOfRow,
} from './csv.ts';
import { capture, hasCaptures } from './testing/captures.ts';

const uuid = 'GPU-c5000000-0000-4000-8000-000000000001';

function aRow(cells: Readonly<Record<string, string>>): CsvRow {
  return new Map(Object.entries({ uuid, ...cells }));
}

test('fields are taken from the help, the best known name of each', () => {
  const help = `List of valid properties to query for the switch "--query-gpu=":

"uuid" or "gpu_uuid"
This value is the "globally unique" identifier.

"clocks.current.sm" or "clocks.sm"
Current frequency of SM (Streaming Multiprocessor) clock. See "temperature.gpu".

"clocks_throttle_reasons.active"
Bitmask.

"power.draw.instant"
The last measured power draw.
`;
  expect(fieldsToQuery(help)).toEqual([
    'uuid',
    'power.draw.instant',
    'clocks.current.sm',
    'clocks_throttle_reasons.active',
  ]);
  expect(fieldsToQuery('No devices were found')).toEqual([]);
});

test('a row counts only with one cell for each field', () => {
  const { rows, refused } = parseCsv('a, 1, [N/A]\nb, 2\n\nc, , N/A, 4\r\nd, , N/A\n', ['x', 'y', 'z']);
  expect(rows.map((row) => [...row.values()])).toEqual([
    ['a', '1', '[N/A]'],
    ['d', '', 'N/A'],
  ]);
  expect(refused).toEqual(['b, 2', 'c, , N/A, 4']);
});

test('a row without a single value is a sample of nothing', () => {
  const absent = ['[N/A]', 'N/A', '', '[Not Supported]', '[Unknown Error]', '[Insufficient Permissions]'];
  const fields = [
    'utilization.gpu',
    'memory.used',
    'temperature.gpu',
    'power.draw',
    'clocks.sm',
    'remapped_rows.pending',
  ];
  const row = aRow(Object.fromEntries(fields.map((field, index) => [field, absent[index] ?? ''])));
  expect(uuidOfRow(row)).toBe(uuid);
  expect(sampleOfRow(row, uuid)).toEqual(emptySample(uuid));
});

test('every value has its place', () => {
  const sample = sampleOfRow(
    aRow({
      'utilization.gpu': '98',
      'utilization.memory': '40',
      'utilization.encoder': '1',
      'utilization.decoder': '2',
      'memory.total': '40960',
      'memory.used': '1000',
      'memory.free': '39360',
      'memory.reserved': '600',
      'temperature.gpu': '61',
      'temperature.memory': '70',
      'power.draw': '[N/A]',
      'power.draw.instant': '333.25',
      'enforced.power.limit': '400.00',
      'clocks.current.sm': '1410',
      'clocks.current.memory': '1593',
      'clocks_throttle_reasons.active': '0x0000000000000040',
      'ecc.errors.corrected.volatile.total': '5',
      'ecc.errors.uncorrected.aggregate.total': '1',
      'ecc.errors.uncorrected.aggregate.sram.thresholdExceeded': 'No',
      'remapped_rows.correctable': '0',
      'remapped_rows.uncorrectable': '2',
      'remapped_rows.pending': 'Yes',
      'remapped_rows.failure': 'No',
      'retired_pages.sbe': '7',
      'retired_pages.dbe': '8',
      'retired_pages.pending': 'No',
      gpu_recovery_action: 'Reset',
    }),
    uuid,
  );
  expect(sample).toEqual({
    ...emptySample(uuid),
    utilization: 98,
    memoryUtilization: 40,
    encoderUtilization: 1,
    decoderUtilization: 2,
    memoryTotalMb: 40_960,
    memoryUsedMb: 1000,
    memoryFreeMb: 39_360,
    memoryReservedMb: 600,
    temperature: 61,
    memoryTemperature: 70,
    powerWatts: 333.25,
    powerLimitWatts: 400,
    smClockMhz: 1410,
    memoryClockMhz: 1593,
    clockEventReasons: 0x40,
    ecc: {
      correctedVolatile: 5,
      uncorrectedVolatile: null,
      correctedAggregate: null,
      uncorrectedAggregate: 1,
      sramThresholdExceeded: false,
    },
    rows: { correctable: 0, uncorrectable: 2, pending: true, failed: false },
    retiredPages: { singleBit: 7, doubleBit: 8, pending: false },
    recoveryAction: 1,
  });
});

test('cells tell what is wrong with the card, with the fields as evidence', () => {
  const row = aRow({
    'pci.bus_id': '00000000:3B:00.0',
    'temperature.gpu': '[GPU requires reset]',
    'power.draw': '[Unknown Error]',
    'fan.speed': '[Insufficient Permissions]',
  });
  expect(problemsOfRow(row, uuid)).toMatchObject([
    {
      kind: 'reset_required',
      gpuUuid: uuid,
      pciBusId: '00000000:3b:00.0',
      evidence: 'temperature.gpu: [GPU requires reset]',
    },
    { kind: 'unknown_error', evidence: 'power.draw: [Unknown Error]' },
  ]);
});

test('processes by card; what is no process is left out', () => {
  const text = `GPU-a, 100, 2048\nGPU-b, 200, [N/A]\nGPU-a, 101, 10\nGPU-a, [Not Found], 5\nGPU-a, 0, 5\n`;
  expect([...(processesByCard(text) ?? [])]).toEqual([
    [
      'GPU-a',
      [
        { pid: 100, memoryMb: 2048 },
        { pid: 101, memoryMb: 10 },
      ],
    ],
    ['GPU-b', [{ pid: 200, memoryMb: null }]],
  ]);
});

test('no processes are one thing, no answer is another', () => {
  expect(processesByCard('')?.size).toBe(0);
  expect(processesByCard('[Not Supported]\n')).toBeNull();
});

describe.runIf(hasCaptures)('captured tables', () => {
  function captured(file: string): { readonly rows: readonly CsvRow[]; readonly refused: readonly string[] } {
    const [header = '', ...lines] = capture('smi-csv', file).split('\n');
    // Captured with a header and units; the agent asks for neither.
    const fields = header.split(/, ?/).map((field) => field.replace(/ \[[^\]]+\]$/, ''));
    return parseCsv(lines.join('\n'), fields);
  }

  function only(file: string): CsvRow {
    const { rows, refused } = captured(file);
    const [row] = rows;
    if (row === undefined || rows.length !== 1 || refused.length !== 0)
      throw new Error(`${rows.length} rows`);
    return row;
  }

  test('an H100 under load', () => {
    const row = only('h100-80g-r590-allfields-load.csv');
    expect(problemsOfRow(row, uuid)).toEqual([]);
    expect(sampleOfRow(row, uuid)).toEqual({
      ...emptySample(uuid),
      utilization: 100,
      memoryUtilization: 11,
      encoderUtilization: 0,
      decoderUtilization: 0,
      memoryTotalMb: 81_559,
      memoryUsedMb: 19_818,
      memoryFreeMb: 61_263,
      memoryReservedMb: 479,
      temperature: 59,
      memoryTemperature: 54,
      powerWatts: 631.95,
      powerLimitWatts: 700,
      smClockMhz: 1980,
      memoryClockMhz: 2619,
      clockEventReasons: 0,
      ecc: {
        correctedVolatile: 0,
        uncorrectedVolatile: 0,
        correctedAggregate: 0,
        uncorrectedAggregate: 0,
        sramThresholdExceeded: false,
      },
      rows: { correctable: 0, uncorrectable: 0, pending: false, failed: false },
      recoveryAction: 0,
    });
  });

  test('an H200 in MIG mode tells no utilisation', () => {
    expect(sampleOfRow(only('h200-mig-r590-allfields-load.csv'), uuid)).toMatchObject({
      utilization: null,
      memoryUtilization: null,
      encoderUtilization: null,
      decoderUtilization: null,
      memoryUsedMb: 16_959,
      temperature: 36,
      powerWatts: 295.01,
    });
  });

  test.each([
    ['rtx2080s-r610-allfields-load.csv', { utilization: 8, encoderUtilization: 100, powerWatts: 98.14 }],
    ['rtx2080s-r595-allfields-load.csv', { memoryTotalMb: 8192 }],
    ['rtx2080s-windows-r591-allfields-load.csv', { memoryTotalMb: 8192 }],
    ['rtx4080s-r595-allfields-load.csv', { memoryTotalMb: 16_376 }],
    ['l40s-r595-allfields-load.csv', { memoryTotalMb: 46_068 }],
  ])('%s', (file, expected) => {
    const row = only(file);
    expect(uuidOfRow(row)).toBe('GPU-00000000-0000-0000-0000-000000000000');
    expect(problemsOfRow(row, uuid)).toEqual([]);
    const sample = sampleOfRow(row, uuid);
    expect(sample).toMatchObject(expected);
    expect(sample.utilization).not.toBeNull();
    expect(sample.temperature).not.toBeNull();
  });

  test('eight H100 of R535, which has no power.draw in this query', () => {
    const { rows, refused } = captured('8x-h100-r535.csv');
    expect([rows.length, refused]).toEqual([8, []]);
    expect(sampleOfRow(rows[1] ?? new Map(), uuid)).toMatchObject({ powerWatts: 71.71, memoryUsedMb: 0 });
  });

  test('cells of several forms of N/A in one row', () => {
    expect(sampleOfRow(only('tesla-t4-r550-na-cells-edited.csv'), uuid)).toMatchObject({
      memoryTemperature: null,
      powerWatts: 9.31,
      ecc: { correctedVolatile: 20, uncorrectedAggregate: 9 },
    });
  });

  test('retired pages under their short names, no rows', () => {
    const { rows } = captured('8x-gpu-remapped-na.csv');
    expect(rows.length).toBeGreaterThan(0);
    const samples = rows.map((row) => sampleOfRow(row, uuid));
    expect(samples.every((sample) => sample.rows === null && sample.retiredPages?.doubleBit === 0)).toBe(
      true,
    );
  });

  test.each(['h100-80g-r590', 'rtx2080s-r610'])('every name that we want is one of %s', (driver) => {
    const names = capture('smi-csv', `${driver}-field-names.txt`).trim().split('\n');
    const fields = fieldsToQuery(names.map((name) => `"${name}"`).join('\n'));
    expect(fields).toHaveLength(30);
    expect(fields).toContain('clocks_event_reasons.active');
  });

  test('captured processes', () => {
    const lines = capture('smi-apps', 'h100-80g-r590-compute-load.csv').trim().split('\n').slice(1);
    // Of the captured columns those that the agent asks for, without units.
    const text = lines.map((line) => {
      const cells = line.split(', ');
      return [cells[4], cells[5], cells[7]?.replace(' MiB', '')].join(', ');
    });
    expect(processesByCard(text.join('\n'))?.get('GPU-00000000-0000-0000-0000-000000000000')).toEqual([
      { pid: 11_327, memoryMb: 2566 },
      { pid: 11_328, memoryMb: 1542 },
      { pid: 11_345, memoryMb: 15_690 },
    ]);
  });
});
