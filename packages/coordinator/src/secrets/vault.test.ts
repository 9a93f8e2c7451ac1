import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller } from '../modelFixture.ts';
import { SecretKeyFile } from './keyFile.ts';
import { seal, unseal } from './sealing.ts';
import { SecretVault } from './vault.ts';

const value = Buffer.from('hunter2 hunter2');
let coordinator: TestCoordinator;
let directory: string;
let vault: SecretVault;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  directory = mkdtempSync(join(tmpdir(), 'muster-secrets-'));
  vault = newVault();
});
afterEach(async () => {
  await coordinator.close();
  rmSync(directory, { recursive: true });
});

const keyPath = () => join(directory, 'secrets.key');

function newVault(): SecretVault {
  const { store, loop, random } = coordinator;
  return new SecretVault({ store, loop, random, keys: new SecretKeyFile(directory) });
}

async function valueOf(name: string): Promise<string> {
  const [read] = await newVault().read('lab', [name]);
  return Buffer.from(read?.value ?? []).toString();
}

test('a value opens for its owner alone, and not when it was changed', () => {
  const key = Buffer.alloc(32, 1);
  const sealed = seal(key, Buffer.alloc(12, 2), 'lab/a', value);
  expect(Buffer.from(unseal(key, 'lab/a', sealed))).toEqual(value);
  expect(() => unseal(key, 'lab/b', sealed)).toThrow('unable to authenticate data');
  expect(() => unseal(Buffer.alloc(32, 3), 'lab/a', sealed)).toThrow('unable to authenticate data');
  for (const at of [0, 12, sealed.length - 1]) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => unseal(key, 'lab/a', changed)).toThrow('unable to authenticate data');
  }
});

test('a rotation replaces the key in its file, and keeps every value', async () => {
  for (const name of ['a', 'b']) await vault.set(aCaller, 'lab', name, value);
  const before = readFileSync(keyPath(), 'utf8');
  expect(statSync(keyPath()).mode & 0o777).toBe(0o600);
  expect(await vault.rotateKey(aCaller)).toBe(2);
  const after = readFileSync(keyPath(), 'utf8');
  expect(after).toMatch(/^[0-9a-f]{64}\n$/);
  expect(after).not.toBe(before);
  expect([await valueOf('a'), await valueOf('b')]).toEqual([value.toString(), value.toString()]);
});

test('a rotation that ends before its commit, or just behind it, loses nothing', async () => {
  await vault.set(aCaller, 'lab', 'a', value);
  const old = readFileSync(keyPath(), 'utf8');
  const unused = `${'ab'.repeat(32)}\n`;
  writeFileSync(keyPath(), unused + old);
  expect(await valueOf('a')).toBe(value.toString());
  await newVault().rotateKey(aCaller);
  writeFileSync(keyPath(), readFileSync(keyPath(), 'utf8') + unused + old);
  expect(await valueOf('a')).toBe(value.toString());
  await newVault().rotateKey(aCaller);
  expect(readFileSync(keyPath(), 'utf8').split('\n')).toHaveLength(2);
});

test('a secret that is set while the key is rotated is not encrypted with the earlier one', async () => {
  await vault.set(aCaller, 'lab', 'a', value);
  await Promise.all([
    vault.rotateKey(aCaller),
    vault.set(aCaller, 'lab', 'b', value),
    vault.rotateKey(aCaller),
  ]);
  expect(await valueOf('b')).toBe(value.toString());
});

test('without its key a secret is refused with the remedy, and can be set again', async () => {
  await vault.set(aCaller, 'lab', 'a', value);
  rmSync(keyPath());
  const refusal = /secret a of project lab cannot be decrypted: .* muster secret set a --project lab < FILE/;
  await expect(valueOf('a')).rejects.toThrow(refusal);
  await expect(vault.rotateKey(aCaller)).rejects.toThrow(refusal);
  await vault.set(aCaller, 'lab', 'a', value);
  expect(await valueOf('a')).toBe(value.toString());
  writeFileSync(keyPath(), 'garbage');
  await expect(valueOf('a')).rejects.toThrow(/secrets\.key is damaged/);
});
