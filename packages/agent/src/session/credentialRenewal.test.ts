import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { testAuthority } from '../../../../test/support/tlsServer.ts';
import { type CredentialFile, credentialFile, makeCredential } from './credential.ts';
import { CredentialRenewal } from './credentialRenewal.ts';

let directory: string;
let file: CredentialFile;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'renewal-'));
  file = credentialFile(directory);
  file.write({ nodeName: 'a', credential: 'muster_agent_first', joined: true, caCertificate: null });
});
afterEach(() => rm(directory, { recursive: true }));

/** As the agent is after a start, a crash before it included. */
const started = () =>
  new CredentialRenewal(file, file.read() ?? expect.fail('nothing is stored'), silentLogger);

test('what is offered is stored before, and offered again until it is taken, also after a crash', async () => {
  const renewal = started();
  const next = await renewal.offer();
  expect(file.read()).toMatchObject({ credential: 'muster_agent_first', next });
  expect(renewal.current().credential).toBe('muster_agent_first');
  expect(await renewal.offer()).toBe(next);
  const again = started();
  expect(again.current().credential).toBe('muster_agent_first');
  expect(await again.offer()).toBe(next);
  expect(again.taken(null)).toBe(true);
  expect(file.read()).toMatchObject({
    credential: next,
    previous: { credential: 'muster_agent_first' },
    next: null,
  });
  expect(again.current().credential).toBe(next);
  expect(again.taken(null), 'said twice it is done once').toBe(false);
  expect(started().current().credential).toBe(next);
});

test('a refusal lets it try what else it has, each once a round; what is let in is the one to use', async () => {
  const first = started();
  const next = await first.offer();
  first.taken(null);
  const renewal = started();
  expect(renewal.refused()).toBe(true);
  expect(renewal.current().credential, 'of a store restored from a backup').toBe('muster_agent_first');
  expect(renewal.refused()).toBe(false);
  expect(renewal.current().credential).toBe(next);
  renewal.refused();
  renewal.welcomed();
  expect(file.read()).toMatchObject({ credential: 'muster_agent_first', previous: { credential: next } });
  expect(started().current().credential).toBe('muster_agent_first');
});

test('a disk on which nothing can be stored ends nothing: what is stored stays in use, and the next try counts', async () => {
  const renewal = started();
  const next = await renewal.offer();
  const { write } = file;
  file.write = () => {
    throw new Error('ENOSPC: no space left on device');
  };
  expect(renewal.taken(null)).toBe(false);
  expect(renewal.current().credential).toBe('muster_agent_first');
  // The coordinator had it taken before, and admits that one only.
  renewal.refused();
  renewal.welcomed();
  expect(renewal.current().credential).toBe(next);
  file.write = write;
  renewal.welcomed();
  expect(file.read()).toMatchObject({ credential: next, previous: { credential: 'muster_agent_first' } });
});

test('with nothing else to try, a refusal is one', () => {
  const renewal = started();
  expect(renewal.refused()).toBe(false);
  expect(renewal.current().credential).toBe('muster_agent_first');
  renewal.welcomed();
  expect(file.read()).toMatchObject({ credential: 'muster_agent_first' });
});

describe('with TLS', () => {
  const authority = testAuthority();

  /** As after a join, with a certificate that is valid for this duration. */
  async function joined(lifetimeMs: number) {
    const { certificate: caCertificate, certify } = await authority;
    const credential = makeCredential(true);
    const certificate = await certify(credential, 'a', lifetimeMs);
    file.write({ nodeName: 'a', credential, certificate, joined: true, caCertificate });
    return { certify, certificate, credential, renewal: started() };
  }
  const hourMs = 60 * 60_000;

  test('a request is offered, and its key is used once the certificate for it has come', async () => {
    const { renewal, certify, certificate, credential } = await joined(hourMs);
    const request = await renewal.offer();
    expect(request).toMatch(/^-----BEGIN CERTIFICATE REQUEST-----/);
    const next = file.read()?.next ?? '';
    expect(next).toMatch(/^-----BEGIN PRIVATE KEY-----/);
    expect(renewal.taken(null), 'a key alone proves nothing').toBe(false);
    expect(renewal.taken(certificate), 'of the key before').toBe(false);
    expect(renewal.refused(), 'there is only one to show').toBe(false);
    const renewed = await certify(next, 'a');
    expect(renewal.taken(renewed)).toBe(true);
    expect(renewal.current()).toMatchObject({ credential: next, certificate: renewed });
    expect(file.read()).toMatchObject({ previous: { credential, certificate }, next: null });
  });

  test('a refusal names the day on which the certificate expired, and the way out', async () => {
    const { renewal } = await joined(-hourMs);
    const refusal = new MusterError('unauthenticated', 'no token');
    const { message, code } = renewal.explain(refusal, Date.now());
    expect(code).toBe('unauthenticated');
    expect(message).toMatch(
      /^the certificate of node a expired on \w+ +\d+ .* GMT: create a token with `muster token create a --replace`/,
    );
    expect(message).toMatch(/The coordinator's answer: no token$/);
  });

  test('of one that is good by the clock of the node, it names what else may be', async () => {
    const { renewal } = await joined(hourMs);
    const refusal = new MusterError('unauthenticated', 'no token');
    expect(renewal.explain(refusal, Date.now()).message).toMatch(
      /revoked or replaced, or one of the clocks is wrong/,
    );
    const other = new MusterError('failed_precondition', 'upgrade the agent');
    expect(renewal.explain(other, Date.now())).toBe(other);
  });
});
