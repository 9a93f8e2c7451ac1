import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Directory, withDirectory } from '@muster/checkpoints/directories';
import { versionOf } from '@muster/checkpoints/listing';
import { describe, expect, test } from 'vitest';
import { readMounts } from '../host/mounts.ts';
import { isShared, removeCheckpoint, sweepAside } from './removal.ts';
import { aDirectory, mountTmpfs } from './watcherFixture.ts';

/** A checkpoint directory beside something that is not to be touched. */
function aPlace() {
  const root = aDirectory();
  const outside = aDirectory();
  writeFileSync(join(outside, 'precious'), 'still here');
  const isUntouched = () => readFileSync(join(outside, 'precious'), 'utf8') === 'still here';
  const remove = async (name: string) =>
    removeCheckpoint(root, name, await versionAt(root, name), readMounts());
  return { root, outside, isUntouched, remove };
}

/** Of what is there now; none: of nothing. */
async function versionAt(root: string, name: string): Promise<string> {
  const directory = await Directory.open(root);
  return withDirectory(directory, (each) => versionOf(each, name)).catch(() => 'none');
}

test('a file and a directory with all that is in it are deleted, and nothing else', async () => {
  const { root, remove } = aPlace();
  writeFileSync(join(root, 'step_1.pt'), 'x');
  mkdirSync(join(root, 'checkpoint-2', 'deep', 'er'), { recursive: true });
  writeFileSync(join(root, 'checkpoint-2', 'deep', 'er', 'file'), 'x');
  writeFileSync(join(root, 'step_3.pt'), 'x');
  await remove('step_1.pt');
  await remove('checkpoint-2');
  expect(readdirSync(root)).toEqual(['step_3.pt']);
  await remove('step_1.pt');
});

test('what was written over since it was looked at stays', async () => {
  const { root } = aPlace();
  for (const name of ['ckpt_a.pt', 'checkpoint-2/model.pt']) {
    mkdirSync(join(root, 'checkpoint-2'), { recursive: true });
    writeFileSync(join(root, name), 'old');
    const [checkpoint = ''] = name.split('/');
    const version = await versionAt(root, checkpoint);
    writeFileSync(join(root, `${name}.tmp`), 'new');
    renameSync(join(root, `${name}.tmp`), join(root, name));
    expect(await removeCheckpoint(root, checkpoint, version, readMounts())).toBe(false);
    expect(readFileSync(join(root, name), 'utf8')).toBe('new');
  }
  expect(readdirSync(root).sort()).toEqual(['checkpoint-2', 'ckpt_a.pt']);
});

test('one below another directory is deleted there', async () => {
  const { root, remove } = aPlace();
  mkdirSync(join(root, 'run', 'step_1'), { recursive: true });
  await remove('run/step_1');
  expect(readdirSync(join(root, 'run'))).toEqual([]);
});

describe('a symbolic link', () => {
  test('in a checkpoint goes with it, and what it leads to stays', async () => {
    const { root, outside, isUntouched, remove } = aPlace();
    mkdirSync(join(root, 'checkpoint-2'));
    symlinkSync(outside, join(root, 'checkpoint-2', 'data'));
    await remove('checkpoint-2');
    expect(readdirSync(root)).toEqual([]);
    expect(isUntouched()).toBe(true);
  });

  test('in the place of a checkpoint is left', async () => {
    const { root, outside, isUntouched, remove } = aPlace();
    symlinkSync(outside, join(root, 'checkpoint-2'));
    await expect(remove('checkpoint-2')).rejects.toThrow('is neither a file nor a directory');
    expect(isUntouched()).toBe(true);
  });

  test('on the way to a checkpoint is not followed', async () => {
    const { root, outside, isUntouched, remove } = aPlace();
    symlinkSync(outside, join(root, 'run'));
    await expect(remove('run/precious')).rejects.toThrow('ENOTDIR');
    expect(isUntouched()).toBe(true);
  });

  test('in the place of the whole directory is not followed', async () => {
    const { root, outside, isUntouched } = aPlace();
    const link = join(root, 'link');
    symlinkSync(outside, link);
    await expect(removeCheckpoint(link, 'precious', 'version', readMounts())).rejects.toThrow('ENOTDIR');
    expect(isUntouched()).toBe(true);
  });
});

test.each(['../x', '/x', 'a/../../x', '.', '', 'a//b'])('"%s" is no name of a checkpoint', async (name) => {
  const { remove } = aPlace();
  await expect(remove(name)).rejects.toThrow('invalid name of a checkpoint');
});

test('one with another file system in it is left whole', async () => {
  const { root, remove } = aPlace();
  mkdirSync(join(root, 'checkpoint-2', 'mounted'), { recursive: true });
  writeFileSync(join(root, 'checkpoint-2', 'model.pt'), 'x');
  mountTmpfs(join(root, 'checkpoint-2', 'mounted'), 'size=1m');
  writeFileSync(join(root, 'checkpoint-2', 'mounted', 'precious'), 'x');
  await expect(remove('checkpoint-2')).rejects.toThrow('contains a mount point');
  expect(readdirSync(join(root, 'checkpoint-2')).sort()).toEqual(['model.pt', 'mounted']);
  expect(existsSync(join(root, 'checkpoint-2', 'mounted', 'precious'))).toBe(true);
});

test('what was mounted in the very moment of the deletion is not touched either', async () => {
  const { root } = aPlace();
  mkdirSync(join(root, 'checkpoint-2', 'mounted'), { recursive: true });
  const version = await versionAt(root, 'checkpoint-2');
  const aside = join(root, `.muster-deleting-${version}`);
  mountTmpfs(join(root, 'checkpoint-2', 'mounted'), 'size=1m', join(aside, 'mounted'));
  // A directory, which no version tells.
  mkdirSync(join(root, 'checkpoint-2', 'mounted', 'precious'));
  // The list of mounts is from a moment before.
  await expect(removeCheckpoint(root, 'checkpoint-2', version, [])).rejects.toThrow('contains a mount point');
  expect(readdirSync(join(aside, 'mounted'))).toEqual(['precious']);
});

test('a deletion that a crash has cut short goes on, and deletes nothing else', async () => {
  const { root, outside, isUntouched } = aPlace();
  mkdirSync(join(root, '.muster-deleting-abc', 'left'), { recursive: true });
  writeFileSync(join(root, '.muster-deleting-abc', 'left', 'file'), 'x');
  mkdirSync(join(root, 'run', '.muster-deleting-def'), { recursive: true });
  symlinkSync(outside, join(root, '.muster-deleting-link'));
  symlinkSync(outside, join(root, 'link'));
  writeFileSync(join(root, 'step_3.pt'), 'x');
  await sweepAside(root, 1);
  expect(readdirSync(root).sort()).toEqual(['link', 'run', 'step_3.pt']);
  expect(readdirSync(join(root, 'run'))).toEqual([]);
  expect(isUntouched()).toBe(true);
});

test('only storage over a network is seen by other nodes', () => {
  const mount = { device: 'd', readOnly: false, mountedReadOnly: false };
  const mounts = [
    { ...mount, mountPoint: '/', type: 'ext4', remote: false },
    { ...mount, mountPoint: '/data', type: 'nfs4', remote: true },
  ];
  expect([isShared('/data/llama', mounts), isShared('/checkpoints', mounts)]).toEqual([true, false]);
});
