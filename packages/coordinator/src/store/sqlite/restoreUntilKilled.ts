/**
 * A program for the tests: `restore DATA BACKUP COPIES` or `accept DATA BACKUP COPIES`. Right before its nth call that changes the
 * disk, it copies DATA to `COPIES/n`: that is what a SIGKILL at this moment leaves behind, because a process that is killed takes
 * nothing from the disk with it. With a number as the last argument it is killed, by itself, right before that call.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const [what = '', dataDir = '', backupPath = '', copies = '', killedAt = '0'] = process.argv.slice(2);
let calls = 0;
let isCopying = false;

const counted = (call: (...args: never[]) => unknown) =>
  function (this: unknown, ...args: never[]) {
    if (!isCopying) {
      calls += 1;
      if (calls === Number(killedAt)) process.kill(process.pid, 'SIGKILL');
      isCopying = true;
      fs.cpSync(dataDir, join(copies, String(calls)), { recursive: true });
      isCopying = false;
    }
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
