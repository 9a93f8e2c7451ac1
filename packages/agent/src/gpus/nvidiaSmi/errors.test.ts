import { describe, expect, test } from 'vitest';
import { fieldsToQuery, parseCsv, problemsOfRow, sampleOfRow } from './csv.ts';
import { excerpt, failureIn, unknownFieldIn } from './nvidiaSmi.ts';
import { capture, captureJson, hasCaptures } from './testing/captures.ts';

test.each([
  ['No devices were found\n', 'no_devices', 'lost'],
  [
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure it is running.",
    'driver',
    'driver_not_loaded',
  ],
  ['Failed to initialize NVML: Driver/library version mismatch\n', 'driver', 'driver_mismatch'],
  ['Failed to initialize NVML: Insufficient Permissions', 'driver', 'no_permission'],
  ['Failed to initialize NVML: Unknown Error', 'driver', 'no_permission'],
  ['Failed to initialize NVML: Something Else', 'driver', 'unknown_error'],
  ['Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error', 'card', 'lost'],
  [
    'Unable to determine the device handle for GPU 0000:3B:00.0: GPU requires reset',
    'card',
    'reset_required',
  ],
] as const)('%s', (text, scope, kind) => {
  const failure = failureIn(text);
  expect(failure).toMatchObject({ scope, problem: { kind, gpuUuid: null } });
  expect(failure?.problem.message).toMatch(/^[A-Z].*\.$/);
  expect(failure?.problem.evidence.length).toBeGreaterThan(10);
});

test.each([
  'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error',
  'Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error',
  'Unable to determine the device handle for GPU1: 0000:3B:00.0: Unknown Error',
])('names the card: %s', (text) => {
  expect(failureIn(text)?.problem.pciBusId).toBe('00000000:3b:00.0');
});

test('evidence of a version mismatch has both lines', () => {
  const text = 'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.1\n';
  expect(failureIn(text)?.problem.evidence).toContain('NVML library version: 570.1');
});

test('what a task calls itself is no failure of the driver', () => {
  expect(failureIn('<process_name>No devices were found</process_name>')).toBeNull();
  expect(failureIn('python Unable to determine the device handle for GPU0000:3B:00.0: x')).toBeNull();
});

test('evidence is short, on one line and harmless to a terminal', () => {
  expect(excerpt('a\n\tb\u001B[2J\u0000c')).toBe('a b [2J c');
  expect(excerpt('x'.repeat(1_000_000)).length).toBeLessThan(400);
});

test('an unknown field is named', () => {
  expect(unknownFieldIn('Field "power.of.will" is not a valid field to query.\n')).toBe('power.of.will');
  expect(unknownFieldIn('0, 1, 2')).toBeNull();
});

interface CapturedError {
  readonly file: string;
  readonly command: string;
  readonly expect: string;
}

describe.runIf(hasCaptures)('captured failures', () => {
  const captured = hasCaptures ? (captureJson('errors', 'index.json') as CapturedError[]) : [];
  const kinds: Readonly<Record<string, string>> = {
    no_gpu: 'lost',
    driver_not_loaded: 'driver_not_loaded',
    driver_mismatch: 'driver_mismatch',
    device_access_lost: 'no_permission',
    no_permission: 'no_permission',
    gpu_lost: 'lost',
    gpu_requires_reset: 'reset_required',
    sensor_error: 'unknown_error',
  };

  test.each(captured)('$file: $expect', (each) => {
    const text = capture('errors', each.file);
    if (each.expect === 'bad_argument') {
      expect(unknownFieldIn(text)).toMatch(/\w/);
      return;
    }
    const query = /--query-gpu=(\S+)/.exec(each.command)?.[1];
    if (query === undefined) {
      expect(failureIn(text)?.problem.kind).toBe(kinds[each.expect]);
      return;
    }
    const fields = query.split(',');
    const rows = parseCsv(text, fields).rows.filter((row) => /^\d+$/.test(row.get('index') ?? ''));
    const found = rows.flatMap((row) => problemsOfRow(row, 'GPU-x').map(({ kind }) => kind));
    expect(found).toEqual(each.expect === 'ok' ? [] : [kinds[each.expect]]);
    // What stands in for a number never becomes one.
    const temperatures = rows.map((row) => sampleOfRow(row, 'GPU-x').temperature);
    expect(temperatures).toEqual(
      rows.map((row) =>
        /^\d+$/.test(row.get('temperature.gpu') ?? '') ? Number(row.get('temperature.gpu')) : null,
      ),
    );
    expect(fieldsToQuery(text)).toEqual([]);
  });
});
