import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { connected } from './sessionFixture.ts';

/** A session over which the credential has been renewed. */
async function renewed() {
  const all = await connected();
  const { first } = all;
  await first.gets('hello');
  first.welcome();
  first.send({ renewCredential: {} });
  const { credential } = await first.gets('credentialOffer');
  first.send({ credentialTaken: {} });
  await first.gets('credentialKept');
  return { ...all, credential };
}

test('a credential is renewed over the session, and kept before the coordinator learns that it is', async () => {
  const all = await connected();
  const { first, renewal } = all;
  await first.gets('hello');
  first.welcome();
  first.send({ credentialTaken: {} });
  first.send({ renewCredential: {} });
  const { credential } = await first.gets('credentialOffer');
  expect(credential).toMatch(/^muster_agent_[\w-]{43}$/);
  expect(renewal.current().credential, 'until it is taken').toBe('muster_agent_first');
  expect(
    first.received.some(({ credentialKept }) => credentialKept),
    'nothing had been offered',
  ).toBe(false);
  first.send({ credentialTaken: {} });
  await first.gets('credentialKept');
  expect(renewal.current().credential).toBe(credential);
});

test('refused with the newest, it shows the one before, as to a coordinator restored from a backup', async () => {
  const { hub, first, renewal, refusals, credential } = await renewed();
  first.refuse(status.UNAUTHENTICATED);
  const second = await hub.session(2);
  await second.gets('hello');
  expect(renewal.current().credential).toBe('muster_agent_first');
  second.welcome();
  second.send({ renewCredential: {} });
  expect(await second.gets('credentialOffer')).not.toEqual({ credential });
  expect(refusals).toEqual([]);
});

test('refused with both, it waits and tries again, as after any refusal', async () => {
  const { hub, first, refusals } = await renewed();
  first.refuse(status.UNAUTHENTICATED);
  const second = await hub.session(2);
  await second.gets('hello');
  second.refuse(status.UNAUTHENTICATED);
  await (await hub.session(3)).gets('hello');
  expect(refusals).toEqual([]);
});
