/** The registry of events, the code that emits them and docs/events.md agree. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { eventKinds } from '@muster/common/eventKinds';
import { expect, test } from 'vitest';
import { productFiles, root } from './source.ts';

/** Their kinds are put together from two parts. */
const made =
  /^(training\.(?!complete|stats)|store\.(restored|accepted)$|job\.(failed|cancelled)$|checkpoint\.)/;

test('every kind of event in the registry is emitted', () => {
  const code = productFiles()
    .filter(({ path }) => path.startsWith('packages/coordinator/src/') && !path.endsWith('.test.ts'))
    .map(({ text }) => text)
    .join('\n');
  const emitted = (kind: string) => code.includes(`'${kind}'`) || made.test(kind);
  expect(Object.keys(eventKinds).filter((kind) => !emitted(kind))).toEqual([]);
});

test('the tables of docs/events.md are those of the registry', () => {
  execFileSync(process.execPath, [join(root, 'scripts/generate-event-docs.mjs'), '--check']);
});
