import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CredentialFile, credentialFile } from './credential.ts';
import { CredentialRenewal } from './credentialRenewal.ts';

let directory: string;
let file: CredentialFile;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'renewal-'));
  file = credentialFile(directory);
  file.write({ nodeName: 'a', credential: 'first', joined: true, caCertificate: null });
});
afterEach(() => rm(directory, { recursive: true }));

/** As the agent is after a start, a crash before it included. */
const started = () => new CredentialRenewal(file, file.read() ?? expect.fail('nothing is stored'));

test('what is offered is stored before, and offered again until it is taken, also after a crash', () => {
  const renewal = started();
  const next = renewal.offer();
  expect(file.read()).toMatchObject({ credential: 'first', next });
  expect(renewal.current()).toBe('first');
  expect(renewal.offer()).toBe(next);
  const again = started();
  expect(again.current()).toBe('first');
  expect(again.offer()).toBe(next);
  expect(again.taken()).toBe(true);
  expect(file.read()).toMatchObject({ credential: next, previous: 'first', next: null });
  expect(again.current()).toBe(next);
  expect(again.taken(), 'said twice it is done once').toBe(false);
  expect(started().current()).toBe(next);
});

test('a refusal lets it try what else it has, each once a round; what is let in is the one to use', () => {
  const first = started();
  const next = first.offer();
  first.taken();
  const renewal = started();
  expect(renewal.refused()).toBe(true);
  expect(renewal.current(), 'of a store restored from a backup').toBe('first');
  expect(renewal.refused()).toBe(false);
  expect(renewal.current()).toBe(next);
  renewal.refused();
  renewal.welcomed();
  expect(file.read()).toMatchObject({ credential: 'first', previous: next });
  expect(started().current()).toBe('first');
});

test('with nothing else to try, a refusal is one', () => {
  const renewal = started();
  expect(renewal.refused()).toBe(false);
  expect(renewal.current()).toBe('first');
  renewal.welcomed();
  expect(file.read()).toMatchObject({ credential: 'first' });
});
