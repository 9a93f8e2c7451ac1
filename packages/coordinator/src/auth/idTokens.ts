/**
 * Verifies ID tokens of the issuer that the coordinator is configured with (OpenID Connect). The keys of the issuer are fetched when
 * a token needs them and kept; an issuer that is slow or down delays only who logs in by it.
 */
import { MusterError, messageOf } from '@muster/common/errors';
import { isTrustworthyUrl, type OidcSettings } from '@muster/common/oidcSettings';
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { type Person, personOf } from './idTokenClaims.ts';

/** An ID token with many groups has some kilobytes. */
const tokenBytesMax = 32 * 1024;
/** Of an answer of the issuer: its description and its keys have a few kilobytes. */
const answerBytesMax = 512 * 1024;
const answerTimeoutMs = 5_000;
/** Clocks of two machines that keep their time differ by less. */
const clockToleranceSeconds = 60;
/** From the end of the login at the issuer to the coordinator. A token that was kept for longer may have been copied. */
const ageSecondsMax = 600;
/** Verifications that wait for the issuer at a time. */
const pendingMax = 64;

/** Those with a public key. `none`, and those with a secret that client and issuer share, are not among them. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

export interface IdTokenParts {
  readonly settings: OidcSettings;
  /** Wall clock, by which tokens expire. */
  readonly wallMs: () => number;
  readonly fetch?: typeof fetch;
  /** What the issuer may take for one answer. */
  readonly timeoutMs?: number;
}

export class IdTokens {
  readonly settings: OidcSettings;
  private readonly parts: IdTokenParts;
  /** null: not fetched yet. One fetch serves all who wait for it. */
  private keys: Promise<JWTVerifyGetKey> | null = null;
  private pending = 0;

  constructor(parts: IdTokenParts) {
    this.parts = parts;
    this.settings = parts.settings;
  }

  /**
   * Who has logged in at the issuer.
   * @throws {MusterError} `unauthenticated` for a token that the issuer has not made for this cluster, or that is not valid now;
   *   `permission_denied` for a person who may not log in; `unavailable`
   */
  async verify(idToken: string): Promise<Person> {
    if (idToken.length > tokenBytesMax)
      throw new MusterError('invalid', `the ID token is larger than ${tokenBytesMax / 1024} KiB`);
    if (this.pending >= pendingMax)
      throw new MusterError('unavailable', 'too many logins wait for the issuer; log in again in a minute');
    this.pending += 1;
    try {
      return personOf(await this.claimsOf(idToken), this.settings);
    } finally {
      this.pending -= 1;
    }
  }

  private async claimsOf(idToken: string): Promise<JWTPayload> {
    const { issuer, clientId } = this.settings;
    const nowMs = this.parts.wallMs();
    try {
      const { payload } = await jwtVerify(idToken, await this.keysOfIssuer(), {
        issuer,
        audience: clientId,
        algorithms,
        clockTolerance: clockToleranceSeconds,
        maxTokenAge: ageSecondsMax,
        requiredClaims: ['sub', 'exp', 'iat'],
        currentDate: new Date(nowMs),
      });
      const { azp } = payload;
      if (azp !== undefined && azp !== clientId)
        throw refusedToken(
          `it was issued to the client ${typeof azp === 'string' ? azp : 'of another form'}, not to ${clientId}`,
        );
      return payload;
    } catch (error) {
      throw asRefusal(error, this.settings, nowMs);
    }
  }

  /** @throws {MusterError} `unavailable`, or `failed_precondition` for an answer that is none of an issuer */
  private keysOfIssuer(): Promise<JWTVerifyGetKey> {
    this.keys ??= this.discover().catch((error: unknown) => {
      // The next login asks again.
      this.keys = null;
      throw error;
    });
    return this.keys;
  }

  private async discover(): Promise<JWTVerifyGetKey> {
    const { issuer } = this.settings;
    const { fetch: fetchAny = fetch, timeoutMs = answerTimeoutMs } = this.parts;
    const fetchBounded = boundedFetch(fetchAny, timeoutMs);
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    let described: unknown;
    try {
      const answer = await fetchBounded(url, { headers: { accept: 'application/json' } });
      if (!answer.ok) throw new Error(`it answers ${answer.status}`);
      described = await answer.json();
    } catch (error) {
      throw unreachable(issuer, error);
    }
    const { issuer: named, jwks_uri: keysUrl } = (described ?? {}) as Readonly<Record<string, unknown>>;
    if (named !== issuer)
      throw new MusterError(
        'failed_precondition',
        `--oidc-issuer: ${issuer} calls itself ${String(named).slice(0, 200)}; an admin of the cluster has to write it in the same way`,
      );
    if (typeof keysUrl !== 'string' || !isTrustworthyUrl(keysUrl))
      throw new MusterError('failed_precondition', `the issuer ${issuer} names no https URL of its keys`);
    return createRemoteJWKSet(new URL(keysUrl), {
      [customFetch]: fetchBounded,
      timeoutDuration: timeoutMs,
    });
  }
}

type Fetch = (url: string, options?: RequestInit) => Promise<Response>;

/** Answers come whole, in time and up to a size, or not at all. */
function boundedFetch(fetchAny: typeof fetch, timeoutMs: number): Fetch {
  return async (url, options = {}) => {
    const inTime = AbortSignal.timeout(timeoutMs);
    const signal = options.signal ? AbortSignal.any([options.signal, inTime]) : inTime;
    const answer = await fetchAny(url, { ...options, redirect: 'error', signal });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length;
      if (bytes > answerBytesMax) throw new Error(`its answer is larger than ${answerBytesMax / 1024} KiB`);
      chunks.push(chunk);
    }
    return new Response(Buffer.concat(chunks), { status: answer.status, headers: answer.headers });
  };
}

function unreachable(issuer: string, error: unknown): MusterError {
  const { cause } = error as { cause?: unknown };
  const isLate = error instanceof Error && /^(?:TimeoutError|JWKSTimeout)$/.test(error.name);
  const reason = isLate
    ? 'no answer in time'
    : messageOf(cause === undefined ? error : cause) || 'the connection was refused';
  return new MusterError(
    'unavailable',
    `the coordinator cannot verify the login: the issuer ${issuer} gives no answer that it can use (${reason}). Log in later, or with a ` +
      'code: an admin creates one with: muster user code NAME',
    { cause: error },
  );
}

function refusedToken(reason: string, cause?: unknown): MusterError {
  return new MusterError('unauthenticated', `the ID token is refused: ${reason}`, { cause });
}

/** What the user is told. Nothing of the token is quoted before its signature was verified. */
function asRefusal(error: unknown, { issuer, clientId }: OidcSettings, nowMs: number): MusterError {
  if (error instanceof MusterError) return error;
  if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) {
    const { claim, payload } = error;
    if (claim === 'iss') return refusedToken(`its issuer is not ${issuer}`, error);
    if (claim === 'aud') return refusedToken(`it is not meant for the client ${clientId}`, error);
    if (claim === 'exp' || claim === 'iat' || claim === 'nbf')
      return refusedToken(timeProblem(payload, nowMs), error);
    return refusedToken(`its claim "${claim}" is not what it should be`, error);
  }
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed)
    return refusedToken(`no key of ${issuer} has signed it`, error);
  if (error instanceof errors.JOSEAlgNotAllowed)
    return refusedToken(
      `it is signed by an algorithm that is not accepted (${algorithms.join(', ')})`,
      error,
    );
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return refusedToken('it is not a signed token', error);
  return unreachable(issuer, error);
}

/** When it was issued and expired, and what the clock here shows: one of the two clocks may be wrong. */
function timeProblem({ iat, exp }: JWTPayload, nowMs: number): string {
  const shown = `the clock of the coordinator shows ${isoText(nowMs / 1_000)}`;
  const issued =
    typeof iat === 'number' ? `it was issued at ${isoText(iat)}` : 'it does not tell when it was issued';
  const until = typeof exp === 'number' ? ` and is valid until ${isoText(exp)}` : '';
  return (
    `${issued}${until}, and ${shown}. Log in again; if it was issued just now, the clock of the issuer or that of the coordinator is ` +
    'wrong: compare both with `date -u`'
  );
}

function isoText(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return Number.isNaN(date.getTime()) ? `${seconds} s` : `${date.toISOString().slice(0, 19)}Z`;
}
