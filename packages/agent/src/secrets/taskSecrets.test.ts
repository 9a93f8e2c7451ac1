import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { tempDirOnDisk } from '../../../../test/support/services.ts';
import { TaskSecrets } from './taskSecrets.ts';

const key = 'job_0123456789ab.1.0';
const used = [
  { name: 'ssh', variable: null },
  { name: 'wandb', variable: 'WANDB_API_KEY' },
];
const values = [
  { name: 'ssh', value: Buffer.from('an ssh key\n') },
  { name: 'wandb', value: Buffer.from('hunter2-hunter2') },
];

let memory: string;
const open = (dataDir = '/data') => new TaskSecrets(memory, dataDir);
beforeEach(() => {
  memory = mkdtempSync('/dev/shm/muster-test-');
});
afterEach(() => rmSync(memory, { recursive: true }));

/** What it has made, found by a task that it keeps. */
const rootOf = (secrets: TaskSecrets) => join(secrets.provided(key, used).directory ?? '', '../../..');
const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a task gets files or variables, as its spec says, and the next agent knows them', () => {
  open().keep(key, used, values);
  const secrets = open();
  expect(secrets.has(key)).toBe(true);
  const { directory, variables } = secrets.provided(key, used);
  expect(variables).toEqual({ WANDB_API_KEY: 'hunter2-hunter2' });
  expect(readdirSync(directory ?? '')).toEqual(['ssh']);
  expect(readFileSync(join(directory ?? '', 'ssh'), 'utf8')).toBe('an ssh key\n');
  // A container that has them mounted may read them; on the node nobody else passes through the directory above.
  expect(modeOf(join(directory ?? '', '..'))).toBe(0o700);
  expect(modeOf(join(directory ?? '', 'ssh'))).toBe(0o444);
  expect(secrets.maskOf(key, used)?.text('a hunter2-hunter2 b')).toBe('a *************** b');
});

test('a shell reads the variables as they are', () => {
  const value = Buffer.from('it\'s $HOME `id` \\ "x"\n\xffend\n', 'latin1');
  open().keep(key, [{ name: 'odd', variable: 'ODD' }], [{ name: 'odd', value }]);
  const { script, directory } = open().provided(key, [{ name: 'odd', variable: 'ODD' }]);
  expect(directory).toBeNull();
  const shown = execFileSync('/bin/sh', ['-c', `. ${script}; env | od -An -c >/dev/null; printf %s "$ODD"`]);
  expect(shown).toEqual(value);
});

test('what is there is kept as it is, and removed with its task', async () => {
  const secrets = open();
  secrets.keep(key, used, values);
  secrets.keep(key, used, []);
  expect(secrets.provided(key, used).variables).toEqual({ WANDB_API_KEY: 'hunter2-hunter2' });
  secrets.keep('other', used, values);
  await secrets.keepOnly(new Set(['other']));
  expect([secrets.has(key), secrets.has('other')]).toEqual([false, true]);
  await secrets.remove('other');
  await secrets.remove('other');
  expect(readdirSync(join(memory, readdirSync(memory)[0] ?? ''))).toEqual([]);
});

test('agents of one machine do not share', () => {
  open('/a').keep(key, used, values);
  expect(open('/b').has(key)).toBe(false);
});

test('without the values everything is hidden, and nothing of a task that has none', () => {
  expect(open().maskOf(key, [])).toBeNull();
  expect(open().maskOf(key, null)).toBeNull();
  expect(open().maskOf(key, used)?.text('hunter2-hunter2')).toContain('are lost');
});

test('a value that cannot be a variable is refused by its name', () => {
  const secrets = open();
  secrets.keep(key, used, [{ name: 'wandb', value: Buffer.from('hunter\0hunter') }]);
  expect(() => secrets.provided(key, used)).toThrow('secret wandb has a zero byte');
});

/** What somebody may have made under its name. */
const obstacles: Readonly<Record<string, (path: string, elsewhere: string) => void>> = {
  'a link': (path, elsewhere) => symlinkSync(elsewhere, path),
  'a file': (path) => writeFileSync(path, ''),
  'a directory that others may write to': (path) => {
    mkdirSync(path);
    chmodSync(path, 0o777);
  },
  // Only root can give a directory away, as this test can only play another user.
  ...(process.geteuid?.() === 0
    ? {
        'a directory of another user': (path: string) => {
          mkdirSync(path);
          chmodSync(path, 0o711);
          chownSync(path, 65_534, 65_534);
        },
      }
    : {}),
};

test.for(Object.keys(obstacles))('%s under its name is passed over', (what) => {
  open().keep(key, used, values);
  const root = rootOf(open());
  rmSync(root, { recursive: true });
  const elsewhere = join(memory, 'elsewhere');
  mkdirSync(elsewhere);
  obstacles[what]?.(root, elsewhere);

  const secrets = open();
  expect(secrets.has(key)).toBe(false);
  secrets.keep(key, used, values);

  expect(rootOf(secrets)).not.toBe(root);
  expect(readdirSync(elsewhere)).toEqual([]);
  expect(open().provided(key, used).variables).toEqual({ WANDB_API_KEY: 'hunter2-hunter2' });
});

test('a task can read its files under an agent whose umask lets nobody in', () => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  open().keep(key, used, values);
  const { directory, script } = open().provided(key, used);
  const files = directory ?? '';
  expect([rootOf(open()), join(files, '../..'), files, join(script ?? '', '..')].map(modeOf)).toEqual([
    0o711, 0o711, 0o755, 0o755,
  ]);
  expect([join(files, 'ssh'), script ?? ''].map(modeOf)).toEqual([0o444, 0o444]);
  // What is not the task's stays closed.
  expect([join(files, '..'), join(files, '../../values')].map(modeOf)).toEqual([0o700, 0o700]);
});

test('nothing is put where others could exchange it, or on a disk', () => {
  chmodSync(memory, 0o777);
  expect(() => open().keep(key, used, values)).toThrow(`chmod +t ${memory}`);
  chmodSync(memory, 0o1777);
  open().keep(key, used, values);
  const disk = tempDirOnDisk('secrets').path;
  mkdirSync(disk, { recursive: true });
  expect(() => new TaskSecrets(disk, '/data').keep(key, used, values)).toThrow('is not on a tmpfs');
});
