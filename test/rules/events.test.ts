/** docs/events.md names every event that the coordinator emits. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { trainingSignKinds } from '@muster/common/training';
import { expect, test } from 'vitest';
import { productFiles, root } from './source.ts';

/** Named like events, and none. */
const others = new Set(['cluster.json', 'task.jsonl', 'checkpoint.keep_best', 'checkpoint.keep_last']);
const categories = 'job|attempt|preflight|task|checkpoint|training|node|cluster|store|token';

test('docs/events.md lists the types of events in the code, and no others', () => {
  const code = productFiles().filter(({ path }) => path.startsWith('packages/coordinator/src/'));
  const quoted = code.flatMap(({ path, text }) =>
    path.endsWith('.test.ts')
      ? []
      : Array.from(
          text.matchAll(new RegExp(`'((?:${categories})\\.[a-z_]+)'`, 'g')),
          ([, kind = '']) => kind,
        ),
  );
  // Made from parts.
  const store = ['store.restored', 'store.accepted'];
  const made = [
    'job.failed',
    'job.cancelled',
    ...store,
    ...trainingSignKinds.map((kind) => `training.${kind}`),
  ];
  const known = new Set([...quoted, ...made].filter((kind) => !others.has(kind)));
  const page = readFileSync(join(root, 'docs/events.md'), 'utf8');
  const cells = Array.from(page.matchAll(/^\| (`[^|]*`) \|/gm), ([, cell = '']) => cell);
  const listed = cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, kind = '']) => kind));
  expect(listed.toSorted()).toEqual([...known].toSorted());
});
