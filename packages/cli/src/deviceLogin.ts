/** Logs in at an issuer of OpenID Connect by the device flow: the user confirms a code in any browser, on any machine. */
import { messageOf } from '@muster/common/errors';
import type { LoginMethod } from '@muster/common/wire/peopleClient';
import {
  allowInsecureRequests,
  type ClientError,
  type Configuration,
  clockTolerance,
  discovery,
  initiateDeviceAuthorization,
  None,
  pollDeviceAuthorizationGrant,
} from 'openid-client';
import { CliError } from './errors.ts';
import { printable } from './output/text.ts';

const answerTimeoutSeconds = 15;

/** The coordinator alone judges by its clock when a token was issued. This many seconds are a hundred years. */
const anyClockSeconds = 100 * 366 * 24 * 60 * 60;

/** What the user needs to log in with a browser. */
export interface DevicePrompt {
  /** Contains the code, where the issuer offers such an address. */
  readonly url: string;
  readonly code: string;
  readonly validForMs: number;
}

/**
 * @param prompt shows the user where to log in; then this waits for them
 * @returns an ID token
 * @throws {CliError} for an issuer that is away or refuses, and for a user who does not confirm
 */
export async function idTokenByDevice(
  method: LoginMethod,
  prompt: (shown: DevicePrompt) => Promise<void>,
): Promise<string> {
  const { issuer, clientId, scope } = method;
  const config = await atIssuer(issuer, () => configured(issuer, clientId));
  const started = await atIssuer(issuer, () => initiateDeviceAuthorization(config, { scope }));
  const { verification_uri: plainUrl, verification_uri_complete: url = plainUrl, user_code: code } = started;
  if (!/^https?:\/\/[\x21-\x7e]{1,2000}$/.test(url) || !/^[\x20-\x7e]{1,64}$/.test(code))
    throw new CliError(`the issuer ${issuer} answers with an address or a code that cannot be shown`);
  await prompt({ url, code, validForMs: started.expires_in * 1_000 });
  const tokens = await atIssuer(issuer, () => pollDeviceAuthorizationGrant(config, started));
  if (tokens.id_token !== undefined) return tokens.id_token;
  throw new CliError(`the issuer ${issuer} gives no ID token for the scope "${scope}"`, {
    hints: ['An admin of the cluster adds openid to --oidc-scope.'],
  });
}

function configured(issuer: string, clientId: string): Promise<Configuration> {
  const isPlain = issuer.startsWith('http:');
  return discovery(new URL(issuer), clientId, { [clockTolerance]: anyClockSeconds }, None(), {
    timeout: answerTimeoutSeconds,
    // The coordinator accepts such an issuer on its own machine only.
    execute: isPlain ? [allowInsecureRequests] : [],
  });
}

async function atIssuer<T>(issuer: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asCliError(issuer, error);
  }
}

function asCliError(issuer: string, error: unknown): CliError {
  const { error: kind, error_description: described } = error as {
    error?: unknown;
    error_description?: unknown;
  };
  if (kind === 'access_denied')
    return new CliError('the login was refused in the browser', { code: 'permission_denied', cause: error });
  if (kind === 'expired_token')
    return new CliError('the code has expired before it was confirmed in the browser', {
      code: 'deadline_exceeded',
      hints: ['Run the same command again for another code.'],
      cause: error,
    });
  if (typeof kind === 'string') {
    const more = typeof described === 'string' ? `: ${printable(described)}` : '';
    return new CliError(`the issuer ${issuer} refuses the login (${printable(kind)}${more})`, {
      code: 'permission_denied',
      hints: [
        'Its admin has to allow the device flow for the client that --oidc-client-id of the coordinator names.',
      ],
      cause: error,
    });
  }
  const { cause, code } = error as ClientError;
  const isLate = code === 'OAUTH_TIMEOUT';
  const inner = cause instanceof Error ? (cause.cause ?? cause) : error;
  const reason = isLate ? `no answer within ${answerTimeoutSeconds} s` : messageOf(inner) || messageOf(error);
  return new CliError(`cannot log in at the issuer ${issuer}: ${printable(reason)}`, {
    code: 'unavailable',
    hints: ['Or log in with a code, which an admin creates with: muster user code NAME'],
    cause: error,
  });
}
