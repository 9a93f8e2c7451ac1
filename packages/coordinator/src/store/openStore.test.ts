import { expect, it } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { openStore } from './openStore.ts';
import { schemaVersion } from './schema.ts';
import { closeDatabase, openDatabase } from './sqlite/open.ts';

/** Brings a store of the newest version to the one before. */
const undoNewest = 'drop table own_space';

it('tells of an upgrade, and of nothing where there is none', async () => {
  const dataDir = tempDir('store').path;
  const warnings: object[] = [];
  const open = () => openStore(dataDir, () => new Uint8Array(6), { warn: (fields) => warnings.push(fields) });
  await open().close();
  await open().close();
  expect(warnings).toEqual([]);

  const toVersion = schemaVersion;
  const earlier = openDatabase(dataDir, () => '');
  earlier.database.exec(`begin; ${undoNewest}; pragma user_version = ${toVersion - 1}; commit`);
  earlier.files.follow();
  earlier.files.acknowledgeNow();
  closeDatabase(earlier);
  earlier.lock.release();
  await open().close();
  expect(warnings).toEqual([{ fromVersion: toVersion - 1, toVersion, dataDir }]);
});
