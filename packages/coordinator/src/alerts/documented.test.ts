/** docs/alerts.md has every name and every built-in alert as the tables have them, and nothing else. */
import { readFileSync } from 'node:fs';
import { type BuiltInAlert, builtInAlerts } from '@muster/common/builtInAlerts';
import { formatDuration } from '@muster/common/spec/duration';
import { expect, test } from 'vitest';
import { type KnownName, namesOfEvery, namesOfKind } from './names.ts';

const page = readFileSync(new URL('../../../../docs/alerts.md', import.meta.url), 'utf8');

/** Rows of the first table behind a heading. */
function rowsBehind(heading: string): readonly string[] {
  const [, after = ''] = page.split(`\n${heading}\n`);
  const [, body = ''] = after.split(/\|---[^\n]*\n/);
  return body.split('\n\n')[0]?.trim().split('\n') ?? [];
}

function rowsOf(names: Readonly<Record<string, KnownName>>): readonly string[] {
  return Object.entries(names).map(([name, { type, meaning }]) => `| \`${name}\` | ${type} | ${meaning} |`);
}

test.each([
  ['### Jobs', namesOfKind.job],
  ['### Nodes', namesOfKind.node],
  ['### The cluster', namesOfKind.cluster],
  ['### Messages', namesOfEvery],
])('the names below %s', (heading, names) => {
  expect(rowsBehind(heading)).toEqual(rowsOf(names));
});

test('the alerts that are built in', () => {
  const rows = Object.entries<BuiltInAlert>(builtInAlerts).map(
    ([name, { severity, kind, condition, forMs }]) =>
      `| \`${name}\` | ${severity} | ${kind} | \`${condition.replaceAll('|', String.raw`\|`)}\` | ` +
      `${forMs === 0 ? '' : formatDuration(forMs)} |`,
  );
  expect(rowsBehind('## Built-in alerts')).toEqual(rows);
});
