import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
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

test('nothing is put where others could read it, or on a disk', async () => {
  open().keep(key, used, values);
  const root = join(memory, readdirSync(memory)[0] ?? '');
  await open().remove(key);
  chmodSync(root, 0o777);
  expect(() => open().keep(key, used, values)).toThrow(`${root} is not this agent's own directory`);
  const disk = tempDir('secrets').path;
  mkdirSync(disk, { recursive: true });
  expect(() => new TaskSecrets(disk, '/data').keep(key, used, values)).toThrow('is not on a tmpfs');
});
