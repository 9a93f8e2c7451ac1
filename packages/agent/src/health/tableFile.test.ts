import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { conditionActions, conditionEnds, conditionSeverities } from '@muster/common/conditions';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defaultConditionTable, rowOf } from './conditionTable.ts';
import { loadConditionTable } from './start.ts';
import { parseConditionTable } from './tableFile.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-table-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function parsed(text: string) {
  const result = parseConditionTable(text);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.table;
}

function problems(text: string) {
  const result = parseConditionTable(text);
  return result.ok ? [] : result.problems;
}

test('without a file the table is as it comes', async () => {
  expect(await loadConditionTable(null)).toBe(defaultConditionTable);
});

test.each([...defaultConditionTable.rows])('the row %s is complete', (kind, row) => {
  expect(kind).toMatch(/^[a-z0-9_]+$/);
  expect(conditionSeverities).toContain(row.severity);
  expect(conditionActions).toContain(row.action);
  expect(conditionEnds).toContain(row.clears);
  expect(row.message).toMatch(/^(?:\{gpu\}|an? |the )/);
  expect(row.message.replaceAll(/\{(?:gpu|number|detail)\}/g, '')).not.toMatch(/[{}]/);
  // What ends with time needs one; what keeps work away must not end by being overlooked.
  if (row.clears === 'when_quiet') expect(row.quietMs).toBeGreaterThan(0);
  if (row.action.startsWith('drain_')) expect(row.clears).not.toBe('when_quiet');
});

test('a file changes what it names and nothing else, in YAML and in JSON', () => {
  const yaml = `
# how we do it here
conditions:
  xid_109: {action: note, severity: info}
  thermal_throttling:
    action: drain_gpu
    quiet: 10m
    raise_after: 30s
  xid_200: {action: drain_node, message: "{gpu} reported {number}"}
  sxid_12028_fatal: {action: note}
thresholds:
  retired_pages: 60
  clock_skew: 500ms
`;
  const table = parsed(yaml);
  const before = (kind: string) => rowOf(defaultConditionTable, kind);
  expect(rowOf(table, 'xid_109')).toEqual({ ...before('xid_109'), action: 'note', severity: 'info' });
  expect(rowOf(table, 'thermal_throttling')).toEqual({
    ...before('thermal_throttling'),
    action: 'drain_gpu',
    quietMs: 600_000,
    raiseAfterMs: 30_000,
  });
  expect(rowOf(table, 'xid_200')).toEqual({
    ...before('xid_other'),
    action: 'drain_node',
    message: '{gpu} reported {number}',
  });
  expect(rowOf(table, 'sxid_12028_fatal')).toEqual({ ...before('sxid_fatal'), action: 'note' });
  expect(rowOf(table, 'xid_79')).toBe(before('xid_79'));
  expect(table.thresholds).toEqual({
    ...defaultConditionTable.thresholds,
    retiredPages: 60,
    clockSkewMs: 500,
  });
  expect(parsed('{"conditions": {"xid_79": {"clears": "by_hand"}}}').rows.get('xid_79')?.clears).toBe(
    'by_hand',
  );
});

test.each(['', '# nothing', 'conditions: {}'])('%j changes nothing', (text) => {
  expect(parsed(text)).toEqual(defaultConditionTable);
});

test('every problem is found at once, with what was expected and what was meant', () => {
  const text = `
conditions:
  xid_79: {action: drain-node, severty: info}
  thermal_throtling: {action: note}
  foo: {action: note}
  xid_48: {quiet: 10 minutes, message: "{card} is broken"}
  xid_31: note
thresholds:
  retired_page: 60
  clock_skew: soon
  disk_free_percent: 120
treshold: 1
`;
  expect(
    problems(text).map(({ path, message, expected, suggestion }) => [path, message, expected, suggestion]),
  ).toEqual([
    [
      'conditions.xid_79.action',
      'got "drain-node"',
      'one of note, blame_job, reset_when_idle, drain_gpu, drain_node',
      'drain_node',
    ],
    ['conditions.xid_79.severty', 'unknown key', null, 'severity'],
    ['conditions.thermal_throtling', 'unknown kind of condition', null, 'thermal_throttling'],
    ['conditions.foo', 'unknown kind of condition', 'a kind of condition, such as xid_79', null],
    [
      'conditions.xid_48.quiet',
      'got "10 minutes"',
      'a duration of at most 365d, such as "10m", "90s" or a number of seconds',
      '10m',
    ],
    [
      'conditions.xid_48.message',
      'got "{card} is broken"',
      'one sentence of 1 to 300 characters; may hold {gpu}, {number}, {detail}',
      null,
    ],
    [
      'conditions.xid_31',
      'got "note"',
      'a mapping of severity, action, clears, quiet, raise_after, message',
      null,
    ],
    [
      'thresholds.clock_skew',
      'got "soon"',
      'a duration of at most 365d, such as "10m", "90s" or a number of seconds',
      null,
    ],
    ['thresholds.disk_free_percent', 'got 120', 'a number from 0 to 100', null],
    ['thresholds.retired_page', 'unknown key', null, 'retired_pages'],
    ['treshold', 'unknown key', null, 'thresholds'],
  ]);
});

test.each([
  ['conditions: [', 'not YAML'],
  ['- a list', 'not a mapping'],
  ['just text', 'not a mapping'],
  ['conditions:\n  xid_79: {action: note}\n  xid_79: {action: note}', 'a kind given twice'],
  ['a: &x 1\nb: *x', 'an alias'],
  ['['.repeat(100_000), 'nesting without end'],
  [`# ${'x'.repeat(300_000)}`, 'too large'],
  ['conditions: 3', 'no mapping of conditions'],
])('%j is refused', (text) => {
  expect(problems(text).length).toBeGreaterThan(0);
});

test('the error names the file, every problem and the way out', async () => {
  const path = join(directory, 'table.yaml');
  writeFileSync(path, 'conditions: {xid_79: {action: reboot}}\nthresholds: {retired_pages: many}\n');
  await expect(loadConditionTable(path)).rejects.toMatchObject({
    name: 'MusterError',
    code: 'invalid',
    message: [
      `the table of conditions ${path} is not valid; fix it, or start without it:`,
      '  conditions.xid_79.action: got "reboot"; expected one of note, blame_job, reset_when_idle, drain_gpu, drain_node',
      '  thresholds.retired_pages: got "many"; expected a whole number from 1 to 1000000',
    ].join('\n'),
  });
  await expect(loadConditionTable(join(directory, 'absent'))).rejects.toThrow(/cannot be read \(ENOENT/);
});
