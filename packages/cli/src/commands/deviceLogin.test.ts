/** `muster login` with a browser: a real issuer, and a coordinator that answers as the test says. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { confirmDevice, type Issuer, issuerClientId, startIssuer } from '../../../../test/support/issuer.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { submittedAtMs } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall } from '../testing/testContext.ts';

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer({ ann: ['ml'] });
});
afterAll(() => issuer.close());

const user = { name: 'ann', role: 'user', projects: ['vision'], createdAtMs: submittedAtMs };
const expiresAtMs = submittedAtMs + 24 * 60 * 60_000;
const methodOf = (url: string, clientId = issuerClientId) => ({
  GetLoginMethod: () => ({ issuer: url, clientId, scope: 'openid profile' }),
  LoginWithIdToken: () => ({ user, clusterId: 'c', expiresAtMs }),
});

/** A login without a code, up to the moment that it waits for the browser. */
async function waitingLogin(answers: Parameters<typeof fakeCoordinator>[0]) {
  const coordinator = await fakeCoordinator(answers);
  const call = newCall(null, { stdin: '' });
  const ended = runCli(['login', coordinator.address], call.context);
  await vi.waitFor(() => expect(call.stderr()).toContain('Waiting for that, for 10 min at most'), 60_000);
  return { coordinator, call, ended, page: /http:\S+/.exec(call.stderr())?.[0] ?? '' };
}

const claimsIn = (idToken: string) =>
  JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString());

test('the user confirms the code in a browser, and the coordinator gets the ID token', async () => {
  const { coordinator, call, ended, page } = await waitingLogin(methodOf(issuer.url));
  expect(page).toMatch(/\?user_code=[A-Z-]+$/);
  await confirmDevice(page, 'ann');
  expect(await ended, call.stderr()).toBe(exitCodes.ok);
  expect(call.stdout()).toContain(`Logged in to ${coordinator.address} as ann (user; vision), for `);
  const [, exchange] = coordinator.requests;
  const { idToken, token } = (exchange?.request ?? {}) as { idToken: string; token: string };
  expect(claimsIn(idToken)).toMatchObject({
    iss: issuer.url,
    aud: issuerClientId,
    preferred_username: 'ann',
    groups: ['ml'],
  });
  const saved = JSON.parse(readFileSync(call.context.environment.contextsPath, 'utf8'));
  expect(saved.contexts['127.0.0.1']).toEqual({ address: coordinator.address, token, ca: null, user: 'ann' });
});

test('the user refuses in the browser', async () => {
  const { call, ended, page } = await waitingLogin(methodOf(issuer.url));
  await confirmDevice(page, 'ann', 'abort');
  expect(await ended).not.toBe(exitCodes.ok);
  expect(call.stderr()).toContain('the login was refused in the browser');
  expect(existsSync(call.context.environment.contextsPath)).toBe(false);
});

test.each([
  [
    'does not know the client',
    () => methodOf(issuer.url, 'other'),
    /the issuer http\S+ refuses the login \(invalid_client/,
  ],
  [
    'is away',
    () => methodOf('http://127.0.0.1:9'),
    /cannot log in at the issuer http:\/\/127\.0\.0\.1:9: .+\n.*muster user code NAME/,
  ],
])('an issuer that %s is named, with a way out', async (_, answers, message) => {
  const coordinator = await fakeCoordinator(answers());
  const call = newCall(null, { stdin: '' });
  expect(await runCli(['login', coordinator.address], call.context)).not.toBe(exitCodes.ok);
  expect(call.stderr()).toMatch(message);
});

test('without an issuer, and without a terminal to type it at, a code is asked for', async () => {
  const coordinator = await fakeCoordinator({ GetLoginMethod: () => ({}) });
  const call = newCall(null, { stdin: '' });
  expect(await runCli(['login', coordinator.address], call.context)).toBe(exitCodes.usage);
  expect(call.stderr()).toContain('an admin creates one with: muster user code NAME');
});
