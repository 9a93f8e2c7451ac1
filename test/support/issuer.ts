/** An issuer of ID tokens: a real provider of OpenID Connect with the device flow, on loopback. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { Provider } from 'oidc-provider';

export const issuerClientId = 'muster-cli';
const keyId = 'first';

export interface Issuer {
  readonly url: string;
  /** What its key signs, whatever the claims are. */
  sign(claims: JWTPayload): Promise<string>;
  close(): Promise<void>;
}

/** @param groups of its users, by name; each user who logs in exists */
export async function startIssuer(groups: Readonly<Record<string, readonly string[]>> = {}): Promise<Issuer> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(url, {
    clients: [
      {
        client_id: issuerClientId,
        token_endpoint_auth_method: 'none',
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
        response_types: [],
        redirect_uris: [],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: keyId, alg: 'RS256', use: 'sig' }] },
    features: { deviceFlow: { enabled: true } },
    cookies: { keys: ['of a test'] },
    // In the ID token itself, as most issuers are configured.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => Promise.resolve({ sub, preferred_username: sub, groups: [...(groups[sub] ?? [])] }),
    }),
  });
  const handle = provider.callback();
  server.on('request', (request, response) => void handle(request, response));
  return {
    url,
    sign: (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: keyId }).sign(privateKey),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const pagesMax = 12;

/** What somebody does in a browser: opens the page of the code, confirms it, logs in and agrees. */
export async function confirmDevice(
  page: string,
  login: string,
  choice: 'confirm' | 'abort' = 'confirm',
): Promise<void> {
  const cookies = new Map<string, string>();
  let url = page;
  let form: URLSearchParams | null = null;
  let html = '';
  let isAborted = false;
  for (let count = 0; count < pagesMax; count += 1) {
    const answer: Response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === null ? {} : { method: 'POST', body: form }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]?.split(/=(.*)/s) ?? [];
      cookies.set(name, value);
    }
    html = await answer.text();
    if (isAborted) return;
    form = null;
    const location = answer.headers.get('location');
    if (location !== null) {
      url = new URL(location, url).href;
      continue;
    }
    const [, action] = /<form[^>]* action="([^"]+)"/.exec(html) ?? [];
    if (action === undefined) {
      if (answer.ok && /success/i.test(html)) return;
      break;
    }
    form = new URLSearchParams();
    for (const [field] of html.matchAll(/<input[^>]*>/g)) {
      const [, name] = /\bname="(\w+)"/.exec(field) ?? [];
      if (name !== undefined) form.set(name, /\bvalue="([^"]*)"/.exec(field)?.[1] ?? '');
    }
    if (form.has('login')) form = new URLSearchParams({ prompt: 'login', login, password: 'any' });
    if (form.has('confirm') && choice === 'abort') form.set('abort', 'yes');
    isAborted = form.has('abort');
    url = new URL(action.replaceAll('&amp;', '&'), url).href;
  }
  throw new Error(`the issuer did not confirm the device; its last page, at ${url}:\n${html}`);
}
