import { chmodSync, cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDirOnDisk } from '../../../../test/support/services.ts';
import { openInstance } from './instance.ts';

let count = 0;
const newId = () => {
  count += 1;
  return `0000000${count}-0000-4000-8000-000000000000`;
};

/** A data directory with a task. */
function aDataDir(): string {
  const { path, remove } = tempDirOnDisk('instance');
  onTestFinished(remove);
  const dataDir = join(path, 'agent');
  for (const name of ['tasks/job_a.1.0', 'run']) mkdirSync(join(dataDir, name), { recursive: true });
  writeFileSync(join(dataDir, 'credential'), 'secret');
  return dataDir;
}

test('a data directory keeps its id, also after it was renamed and its mode was changed', () => {
  const dataDir = aDataDir();
  const { instanceId } = openInstance(dataDir, newId);
  expect(openInstance(dataDir, newId)).toEqual({ instanceId, setAside: null });
  renameSync(dataDir, `${dataDir}-moved`);
  for (const mode of [0o644, 0o600]) chmodSync(join(`${dataDir}-moved`, 'instance'), mode);
  expect(openInstance(`${dataDir}-moved`, newId)).toEqual({ instanceId, setAside: null });
});

test('a copy gets another id, and the tasks of the original are set aside', () => {
  const dataDir = aDataDir();
  const { instanceId } = openInstance(dataDir, newId);
  const copy = `${dataDir}-copy`;
  cpSync(dataDir, copy, { recursive: true, preserveTimestamps: true });
  const opened = openInstance(copy, newId);
  expect(opened.instanceId).not.toBe(instanceId);
  expect(readdirSync(opened.setAside ?? '').toSorted()).toEqual(['run', 'tasks']);
  expect(readdirSync(copy).filter((name) => name === 'tasks' || name === 'run')).toEqual([]);
  expect(openInstance(copy, newId)).toEqual({ instanceId: opened.instanceId, setAside: null });
  expect(openInstance(dataDir, newId)).toEqual({ instanceId, setAside: null });
});

test('a backup that is put back under the same path is a copy', () => {
  const dataDir = aDataDir();
  const { instanceId } = openInstance(dataDir, newId);
  cpSync(dataDir, `${dataDir}-backup`, { recursive: true });
  rmSync(dataDir, { recursive: true });
  cpSync(`${dataDir}-backup`, dataDir, { recursive: true });
  expect(openInstance(dataDir, newId).instanceId).not.toBe(instanceId);
});

test.each(['', 'damaged'])(
  'a directory of the release before, or with the place "%s", keeps its id',
  (place) => {
    const dataDir = aDataDir();
    writeFileSync(join(dataDir, 'instance'), 'old-id\n');
    if (place !== '') writeFileSync(join(dataDir, 'place'), place);
    expect(openInstance(dataDir, newId)).toEqual({ instanceId: 'old-id', setAside: null });
    expect(openInstance(dataDir, newId)).toEqual({ instanceId: 'old-id', setAside: null });
  },
);
