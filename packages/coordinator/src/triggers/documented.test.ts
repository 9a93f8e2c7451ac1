/** docs/pipelines.md has every name for conditions over events as the table has them. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { KnownName } from '../alerts/names.ts';
import { eventNames } from './eventCondition.ts';

const page = readFileSync(new URL('../../../../docs/pipelines.md', import.meta.url), 'utf8');

test('the names of events', () => {
  const rows = Object.entries<KnownName>(eventNames).map(
    ([name, { type, meaning }]) => `| \`${name}\` | ${type} | ${meaning} |`,
  );
  expect(page).toContain(`|---|---|---|\n${rows.join('\n')}\n\n`);
});
