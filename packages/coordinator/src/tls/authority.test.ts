import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { countingBytes } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { authorityLifetimeMs, authorityPath, hasAuthority, openAuthority } from './authority.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'authority-'));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const open = (nowMs = someMs) => openAuthority(dataDir, 'c0ffee', countingBytes(), nowMs);

test('the CA is made once, for ten years, and its key is for the owner alone', async () => {
  expect(hasAuthority(dataDir)).toBe(false);
  const made = await open();
  expect(new X509Certificate(made.certificate).subject).toBe('CN=Muster CA of cluster c0ffee');
  expect(made.notAfterMs).toBe(Math.floor((someMs + authorityLifetimeMs) / 1_000) * 1_000);
  expect(hasAuthority(dataDir)).toBe(true);
  for (const name of ['ca.pem', 'ca.key'])
    expect(statSync(join(dataDir, 'tls', name)).mode & 0o777).toBe(0o600);
  expect(statSync(join(dataDir, 'tls')).mode & 0o777).toBe(0o700);
  const later = await open(someMs + 1_000_000);
  expect(later.certificate).toBe(made.certificate);
  expect(later.privateKey.equals(made.privateKey)).toBe(true);
});

test('a start that was cut off before the certificate was there makes a whole CA', async () => {
  await open();
  rmSync(authorityPath(dataDir));
  const { certificate } = await open();
  expect(readFileSync(authorityPath(dataDir), 'utf8')).toBe(certificate);
});

test.each([
  ['a key that is missing', () => rmSync(join(dataDir, 'tls/ca.key')), 'ENOENT'],
  ['a certificate that is damaged', () => writeFileSync(authorityPath(dataDir), 'x'), 'cannot be used'],
  [
    'a key of another CA',
    () => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      writeFileSync(join(dataDir, 'tls/ca.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    },
    'key and certificate do not belong together',
  ],
])('%s is refused with the remedy, and no other is made in its place', async (_what, damage, reason) => {
  await open();
  damage();
  const before = readFileSync(authorityPath(dataDir), 'utf8');
  await expect(open()).rejects.toThrow(reason);
  await expect(open()).rejects.toThrow(
    `Restore ${join(dataDir, 'tls')} from a backup; without one, remove that directory`,
  );
  expect(readFileSync(authorityPath(dataDir), 'utf8')).toBe(before);
});

test('an expired CA is refused', async () => {
  await open();
  await expect(open(someMs + authorityLifetimeMs)).rejects.toThrow('its certificate expired on');
});
