/**
 * A program for the tests: `restore DATA BACKUP` or `accept DATA`, and last the number of a call that changes the disk. It is
 * killed, by itself, right before that call; SIGKILL, so that nothing is cleaned up. With fewer calls it ends with 0.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync } from 'node:sqlite';

const [what = '', dataDir = '', backupPath = '', killedAt = '0'] = process.argv.slice(2);
let calls = 0;

const counted = (call: (...args: never[]) => unknown) =>
  function (this: unknown, ...args: never[]) {
    calls += 1;
    if (calls === Number(killedAt)) process.kill(process.pid, 'SIGKILL');
    return call.apply(this, args);
  };

const changing = ['mkdirSync', 'renameSync', 'rmSync', 'fsyncSync', 'fdatasyncSync'] as const;
for (const name of changing) Object.assign(fs, { [name]: counted(fs[name]) });
syncBuiltinESMExports();
for (const name of ['exec', 'close'] as const)
  Object.assign(DatabaseSync.prototype, { [name]: counted(DatabaseSync.prototype[name]) });

const { acceptStore, restoreStore } = await import('./restoreStore.ts');
if (what === 'restore') await restoreStore(dataDir, backupPath, 0, { replaces: true });
else acceptStore(dataDir, 0);
