import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Directory } from '@muster/checkpoints/directories';
import { expect, test, vi } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { beganAfter, identityAt, takeSnapshot } from './stopSnapshot.ts';

test('a checkpoint that gets its name while the snapshot is taken was begun before the stop', async () => {
  const root = tempDir('snapshot').path;
  writeFileSync(join(root, '.step_300.tmp'), 'saved');
  const { identify } = Directory.prototype;
  const stat = vi.spyOn(Directory.prototype, 'identify').mockImplementationOnce(function (
    this: Directory,
    name: string,
  ) {
    renameSync(join(root, name), join(root, 'step_300.pt'));
    return identify.call(this, name);
  });
  const snapshot = await takeSnapshot(root, new Map(), 0);
  stat.mockRestore();
  const isNew = async (name: string) =>
    snapshot !== null && beganAfter(snapshot, { name, version: 'v' }, await identityAt(root, name));
  expect(await isNew('step_300.pt')).toBe(false);
  writeFileSync(join(root, 'step_302.pt'), 'saved later');
  expect(await isNew('step_302.pt')).toBe(true);
});

test('of a directory that changes at every look nothing counts as begun after the stop', async () => {
  const root = tempDir('snapshot').path;
  writeFileSync(join(root, 'step_1.pt'), 'saved');
  const stat = vi.spyOn(Directory.prototype, 'identify').mockResolvedValue(null);
  expect(await takeSnapshot(root, new Map(), 0)).toBeNull();
  stat.mockRestore();
});
