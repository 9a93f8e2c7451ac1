/** Logins with ID tokens of a real issuer, and with what somebody hostile would send in their place. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { MusterError } from '@muster/common/errors';
import type { OidcSettings } from '@muster/common/oidcSettings';
import { connectMuster, type MusterApi } from '@muster/common/wire/client';
import { generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Issuer, issuerClientId, startIssuer } from '../../../../test/support/issuer.ts';
import { IdTokens } from '../auth/idTokens.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';

const secret = (letter: string) => `muster_user_${letter.repeat(43)}`;
const daySeconds = 24 * 60 * 60;

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

function settings(change: Partial<OidcSettings> = {}): OidcSettings {
  return {
    issuer: issuer.url,
    clientId: issuerClientId,
    scope: 'openid profile',
    userClaim: 'preferred_username',
    userDomain: null,
    groupsClaim: 'groups',
    groups: [],
    createRole: null,
    ...change,
  };
}

async function aCoordinator(
  oidc: OidcSettings = settings(),
): Promise<TestCoordinator & { anyone: MusterApi }> {
  const coordinator = await startTestCoordinator({ oidc });
  const anyone = connectMuster({ address: coordinator.address, token: 'none' });
  onTestFinished(async () => {
    anyone.close();
    await coordinator.close();
  });
  return { ...coordinator, anyone };
}

function as(coordinator: TestCoordinator, token: string): MusterApi {
  const api = connectMuster({ address: coordinator.address, token });
  onTestFinished(() => api.close());
  return api;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => expect.fail('it was not refused'),
    (error: MusterError) => `${error.code}: ${error.message}`,
  );
}

/** Of ann, made a moment ago by the clock of a coordinator that has just started. */
function claims(change: Readonly<Record<string, unknown>> = {}): JWTPayload {
  const iat = Math.floor(someMs / 1_000);
  const own = { iss: issuer.url, aud: issuerClientId, sub: 'ann', preferred_username: 'ann' };
  return { ...own, iat, exp: iat + 3_600, ...change };
}

const signed = (change: Readonly<Record<string, unknown>> = {}) => issuer.sign(claims(change));
const ann = { name: 'ann', role: 'user', projects: ['vision'] } as const;

describe('an ID token', () => {
  test('of a user is exchanged for one token of theirs, and repeating that is safe', async () => {
    const coordinator = await aCoordinator();
    const { api, anyone } = coordinator;
    expect(await anyone.getLoginMethod()).toEqual({
      issuer: issuer.url,
      clientId: issuerClientId,
      scope: 'openid profile',
    });
    await api.addUser(ann);
    const idToken = await signed();
    const first = await anyone.loginWithIdToken(idToken, secret('a'));
    expect(first.user).toMatchObject(ann);
    expect(await anyone.loginWithIdToken(idToken, secret('a'))).toEqual(first);
    const again = refusal(anyone.loginWithIdToken(idToken, secret('b')));
    expect(await again).toMatch(/^already_exists: this ID token was used already/);
    expect(await as(coordinator, secret('a')).listJobs({})).toMatchObject({ jobs: [] });
    const [listed] = (await api.listCredentials()).filter(({ kind }) => kind === 'user');
    expect(listed).toMatchObject({ user: 'ann', label: 'login', expiresAtMs: first.expiresAtMs });
    await api.revokeCredential(listed?.id ?? '');
    expect(await refusal(as(coordinator, secret('a')).listJobs({}))).toMatch(/^unauthenticated/);
    const events = [...coordinator.memory.events.values()].filter(({ kind }) => kind === 'token.issued');
    expect(events).toMatchObject([{ by: 'id_token:ann', data: { user: 'ann', by: 'id_token' } }]);
    // It is no token itself, nor is what of it is remembered.
    expect(await refusal(as(coordinator, idToken).listJobs({}))).toMatch(/^unauthenticated/);
    const signedPart = idToken.slice(0, idToken.lastIndexOf('.'));
    expect(await refusal(as(coordinator, signedPart).listJobs({}))).toMatch(/^permission_denied/);
  });

  test('is used once, in whichever of its spellings', async () => {
    const { api, anyone } = await aCoordinator();
    await api.addUser(ann);
    const idToken = await signed();
    // The last character has bits that no signature contains.
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const spelled = idToken.slice(0, -1) + digits[digits.indexOf(idToken.at(-1) ?? '') ^ 1];
    const bytesOf = (text: string) => Buffer.from(text.split('.')[2] ?? '', 'base64url');
    expect(bytesOf(spelled)).toEqual(bytesOf(idToken));
    await anyone.loginWithIdToken(idToken, secret('a'));
    expect(await refusal(anyone.loginWithIdToken(spelled, secret('b')))).toMatch(
      /^already_exists: this ID token was used already/,
    );
  });

  const otherKey = async () => {
    const { privateKey } = await generateKeyPair('RS256');
    return new SignJWT(claims()).setProtectedHeader({ alg: 'RS256', kid: 'first' }).sign(privateKey);
  };
  const sharedSecret = () =>
    new SignJWT(claims()).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(issuerClientId.padEnd(32)));
  const nowSeconds = Math.floor(someMs / 1_000);

  test.each<[string, () => string | Promise<string>, RegExp]>([
    [
      'for another client',
      () => signed({ aud: 'other' }),
      /^unauthenticated: .*it is not meant for the client muster-cli$/,
    ],
    [
      'for several clients, issued to another',
      () => signed({ aud: ['other', issuerClientId], azp: 'other' }),
      /^unauthenticated: .*issued to the client other, not to muster-cli$/,
    ],
    [
      'of another issuer',
      () => signed({ iss: 'https://evil.example' }),
      /^unauthenticated: .*its issuer is not http/,
    ],
    ['signed by another key', otherKey, /^unauthenticated: .*no key of http\S+ has signed it$/],
    ['signed by a shared secret', sharedSecret, /^unauthenticated: .*an algorithm that is not accepted/],
    [
      'that is not signed',
      () => new UnsecuredJWT(claims()).encode(),
      /^unauthenticated: .*not (?:accepted|a signed token)/,
    ],
    [
      'whose claims were changed',
      async () => {
        const [head, , signature] = (await signed()).split('.');
        const body = Buffer.from(JSON.stringify(claims({ preferred_username: 'boss' }))).toString(
          'base64url',
        );
        return [head, body, signature].join('.');
      },
      /^unauthenticated: .*no key of/,
    ],
    ['without an end', () => signed({ exp: undefined }), /^unauthenticated: /],
    ['without a subject', () => signed({ sub: undefined }), /^unauthenticated: .*claim "sub"/],
    [
      'that has expired',
      () => signed({ iat: nowSeconds - 7_200, exp: nowSeconds - 3_600 }),
      /^unauthenticated: .*valid until/,
    ],
    [
      'that was kept for an hour',
      () => signed({ iat: nowSeconds - 3_000 }),
      /^unauthenticated: .*it was issued at/,
    ],
    [
      'of a day later: one of the clocks is wrong',
      () => signed({ iat: nowSeconds + daySeconds, exp: nowSeconds + daySeconds + 3_600 }),
      /issued at 2\S+Z and is valid until 2\S+Z, and the clock of the coordinator shows 2\S+Z\. Log in again; .*compare both with `date -u`$/,
    ],
    ['that is none', () => 'a.b.c', /^unauthenticated: .*not a signed token$/],
    ['that is empty', () => '', /^unauthenticated: .*not a signed token$/],
    ['that is huge', () => 'a'.repeat(40_000), /^invalid: the ID token is larger than 32 KiB$/],
    [
      'without a name',
      () => signed({ preferred_username: undefined }),
      /^permission_denied: .*no claim "preferred_username"/,
    ],
    [
      'whose name is no text',
      () => signed({ preferred_username: ['ann'] }),
      /^permission_denied: .*no claim/,
    ],
    [
      'whose name has another form',
      () => signed({ preferred_username: '../ann' }),
      /^permission_denied: .*a user name has 1 to 32/,
    ],
    [
      'of nobody whom the cluster knows',
      () => signed({ preferred_username: 'eve' }),
      /^permission_denied: .*muster user add eve --no-login$/,
    ],
    [
      'of a disabled user',
      () => signed({ preferred_username: 'dora' }),
      /^permission_denied: the user dora is disabled/,
    ],
    [
      'of the built-in admin',
      () => signed({ preferred_username: 'admin' }),
      /^permission_denied: .*this cluster does not/,
    ],
  ])('%s is refused', async (_, make, expected) => {
    const { api, anyone } = await aCoordinator();
    await api.addUser(ann);
    await api.addUser({ ...ann, name: 'dora', role: 'disabled' });
    expect(await refusal(anyone.loginWithIdToken(await make(), secret('a')))).toMatch(expected);
    expect((await api.listCredentials()).map(({ kind }) => kind)).toEqual(['admin']);
    // Who shows a valid one right afterwards is not held up.
    expect((await anyone.loginWithIdToken(await signed(), secret('b'))).user).toMatchObject(ann);
  });

  test('is refused where none are accepted', async () => {
    const coordinator = await startTestCoordinator();
    onTestFinished(() => coordinator.close());
    const anyone = as(coordinator, 'none');
    expect(await anyone.getLoginMethod()).toBeNull();
    const refused = refusal(anyone.loginWithIdToken(await signed(), secret('a')));
    expect(await refused).toMatch(/^failed_precondition: this coordinator accepts no ID tokens/);
  });
});

describe('a user', () => {
  test('whom nobody has added is made where the admin allows it, but not one who was disabled', async () => {
    const { api, anyone } = await aCoordinator(settings({ createRole: 'viewer' }));
    const { user } = await anyone.loginWithIdToken(await signed(), secret('a'));
    expect(user).toMatchObject({ name: 'ann', role: 'viewer', projects: ['default'] });
    await api.changeUser('ann', { role: 'disabled' });
    const later = await signed({ jti: 'later' });
    expect(await refusal(anyone.loginWithIdToken(later, secret('b')))).toMatch(
      /^permission_denied: .*disabled/,
    );
    const asAdmin = await signed({ preferred_username: 'admin' });
    expect(await refusal(anyone.loginWithIdToken(asAdmin, secret('c')))).toMatch(
      /^invalid: "admin" is the user of/,
    );
  });

  const groups = [
    { group: 'ml', role: 'user', projects: ['vision', 'text'] },
    { group: 'ops', role: 'operator', projects: [] },
  ] as const;

  test('has what their groups give them, from each login on', async () => {
    const { api, anyone } = await aCoordinator(settings({ groups }));
    await api.addUser({ ...ann, role: 'admin' });
    const login = async (of: readonly string[], letter: string) =>
      (await anyone.loginWithIdToken(await signed({ groups: [...of], jti: letter }), secret(letter))).user;
    expect(await login(['ml', 'chess'], 'a')).toMatchObject({ role: 'user', projects: ['text', 'vision'] });
    expect(await login(['ops', 'ml'], 'b')).toMatchObject({ role: 'operator', projects: ['text', 'vision'] });
    expect(await login(['ops'], 'c')).toMatchObject({ role: 'operator', projects: ['default'] });
    expect(await refusal(login(['chess'], 'd'))).toMatch(
      /^permission_denied: ann is in none of the groups .*\(ml, ops\)/,
    );
    expect(await refusal(login([], 'e'))).toMatch(/^permission_denied/);
  });

  test('is named by the claim and the domain that the admin has chosen', async () => {
    const { api, anyone } = await aCoordinator(settings({ userClaim: 'email', userDomain: 'example.org' }));
    await api.addUser(ann);
    const email = 'Ann@example.org';
    expect(await refusal(anyone.loginWithIdToken(await signed({ email }), secret('a')))).toMatch(
      /has not verified/,
    );
    const elsewhere = await signed({ email: 'ann@example.org.evil.example', email_verified: true });
    expect(await refusal(anyone.loginWithIdToken(elsewhere, secret('a')))).toMatch(
      /does not end in @example.org/,
    );
    const verified = await signed({ email, email_verified: true });
    expect((await anyone.loginWithIdToken(verified, secret('a'))).user).toMatchObject(ann);
  });
});

describe('an issuer', () => {
  async function listening(handle: RequestListener): Promise<string> {
    const server = createServer(handle);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Of an issuer that was there. */
  async function closed(): Promise<string> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return `http://127.0.0.1:${port}`;
  }

  const verify = async (url: string, timeoutMs?: number) => {
    const tokens = new IdTokens({
      settings: settings({ issuer: url }),
      wallMs: () => someMs,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    return refusal(tokens.verify(await signed()));
  };

  test('that is down, slow, endless or another is named, and others log in meanwhile', async () => {
    const held: ServerResponse[] = [];
    const url = await listening((_, response) => void held.push(response));
    const coordinator = await aCoordinator(settings({ issuer: url }));
    await coordinator.api.addUser(ann);
    const waiting = refusal(coordinator.anyone.loginWithIdToken(await signed(), secret('a')));
    await vi.waitFor(() => expect(held).toHaveLength(1));
    const { code } = await coordinator.api.createLoginCode('ann');
    await as(coordinator, code).login(secret('b'));
    held[0]?.destroy();
    expect(await waiting).toMatch(
      /^unavailable: .*http\S+ gives no answer that it can use \(.+\)\. Log in later, or with a code/,
    );
    expect(await verify(await closed())).toMatch(/^unavailable: .*ECONNREFUSED/);
    expect(await verify(await listening(() => {}), 1)).toMatch(/^unavailable: .*no answer in time/);
    const endless: RequestListener = (_, response) => {
      const more = () =>
        void (response.write(' '.repeat(65_536)) ? setImmediate(more) : response.once('drain', more));
      more();
    };
    expect(await verify(await listening(endless))).toMatch(/^unavailable: .*larger than 512 KiB/);
    const error: RequestListener = (_, response) => void response.writeHead(500).end();
    expect(await verify(await listening(error))).toMatch(/^unavailable: .*it answers 500/);
    const text: RequestListener = (_, response) => void response.end('welcome');
    expect(await verify(await listening(text))).toMatch(/^unavailable: .*JSON/);
    const other: RequestListener = (_, response) =>
      void response.end(JSON.stringify({ issuer: 'https://a.example' }));
    expect(await verify(await listening(other))).toMatch(
      /^failed_precondition: .*calls itself https:\/\/a\.example/,
    );
  });

  test('that was down is asked again by the next login', async () => {
    const answer = await fetch(`${issuer.url}/.well-known/openid-configuration`);
    const described = (await answer.json()) as object;
    let isUp = false;
    const url = await listening((_, response) => {
      if (isUp) response.end(JSON.stringify({ ...described, issuer: url }));
      else response.writeHead(503).end();
    });
    const tokens = new IdTokens({ settings: settings({ issuer: url }), wallMs: () => someMs });
    const idToken = await signed({ iss: url });
    expect(await refusal(tokens.verify(idToken))).toMatch(/^unavailable: .*it answers 503/);
    isUp = true;
    await vi.waitFor(async () => expect(await tokens.verify(idToken)).toEqual({ name: 'ann', access: null }));
  });
});
