/**
 * Who makes a call, and whether they may: one function for every way in. gRPC asks it in `interceptor.ts`, HTTP before it reads the
 * body of a request.
 *
 * People and joining agents send a token. Agents that have joined prove themselves by the certificate of their connection, or,
 * on loopback without TLS, by a secret that they send as a token.
 */
import { MusterError } from '@muster/common/errors';
import { parseTraceparent, traceparentText } from '@muster/common/traceContext';
import { musterVersion, skewRefusal } from '@muster/common/version';
import type { Identity } from '../caller.ts';
import { keyHashOf } from '../tls/nodeCertificates.ts';
import type { Gate } from './gate.ts';
import { isForAnyone, jobUseOf, mayCall } from './policy.ts';
import type { RefusalKind } from './refusals.ts';
import { hashToken } from './tokens.ts';

/**
 * Streams that are open at a time under the credential of one agent. It has four; those of connections that broke without being
 * closed stay until that is detected, a minute or so, and it dials again meanwhile. Each takes memory, whatever is sent on it.
 */
export const agentStreamsMax = 256;

export interface EstablishParts {
  readonly gate: Gate;
  /** Whether connections are encrypted: agents show certificates then, and no secret of theirs is taken. */
  readonly encrypted: boolean;
}

/** What is known of a call before its message is looked at. */
export interface ShownCall {
  /** Of the method, as gRPC calls it: `/muster.v1.Muster/GetJob`. */
  readonly path: string;
  readonly isStream: boolean;
  /** Address of the client without its port; null: unknown. */
  readonly peer: string | null;
  /** The header of that name; null: none. */
  readonly authorization: string | null;
  /**
   * DER of the certificate that the client has shown and proved to hold the key of. null: none, or one that the CA of this cluster
   * has not made. Asked for only where no token is shown.
   */
  readonly certificate: () => Uint8Array | null;
  /** Of the client, as it says itself; null: it does not. */
  readonly version: string | null;
  /** The header of that name; null: none. One that is not valid counts as none. */
  readonly traceparent: string | null;
}

/** `caller` as handlers get it, or `refusal`. */
export type Established = {
  /** Who has shown a valid token or certificate, also where the call is refused. */
  readonly shownBy: Identity | null;
} & (
  | { readonly caller: Identity; readonly refusal: null }
  | { readonly caller: null; readonly refusal: MusterError }
);

export function establish({ gate, encrypted }: EstablishParts, call: ShownCall): Established {
  const { path, peer, isStream } = call;
  const refuse = (
    kind: RefusalKind,
    code: MusterError['code'],
    message: string,
    by: Identity | null = null,
  ): Established => {
    gate.refusals.note({ kind, method: path, peer, by: by?.id ?? null });
    return refused(new MusterError(code, message), by);
  };
  if (isForAnyone(path)) {
    // Each counts as a failure: a caller without a credential may ask as often as one with a wrong credential.
    if (!gate.refusals.mayFail(peer))
      return refuse('too_many_failures', 'resource_exhausted', 'too many calls from this address; wait');
    return { caller: { kind: 'anonymous', id: 'anonymous', peer }, refusal: null, shownBy: null };
  }
  const { authorization } = call;
  const token = authorization?.startsWith('Bearer ') === true ? authorization.slice('Bearer '.length) : null;
  const certificate = token === null ? call.certificate() : null;
  const shown = token === null ? (certificate === null ? null : keyHashOf(certificate)) : hashToken(token);
  const identity = shown === null ? null : gate.identify(shown, peer);
  if (identity?.kind === 'agent' && encrypted && token !== null) {
    const message =
      `the agent of ${identity.node} joined before this coordinator had TLS, and has no certificate yet: ` +
      `muster token create ${identity.node} --replace, and start the agent with that token`;
    return refuse('unauthenticated', 'unauthenticated', message);
  }
  if (identity === null) {
    // Only who fails is counted: a valid token behind the same address is never held up.
    if (!gate.refusals.mayFail(peer)) {
      const message =
        'too many calls without a valid token or certificate from this address; wait, and use a valid one';
      return refuse('too_many_failures', 'resource_exhausted', message);
    }
    const expiry = shown === null ? null : gate.expiryOf(shown);
    const message =
      expiry !== null
        ? expiry.message
        : token !== null
          ? 'the token is unknown to this coordinator, or it has expired or been revoked'
          : certificate !== null
            ? 'the certificate is unknown to this coordinator, or it has expired or been revoked'
            : 'no token: send `authorization: Bearer <token>` with every call' +
              (encrypted ? '; and no certificate of a node that this cluster has made' : '');
    return refuse('unauthenticated', 'unauthenticated', message);
  }
  const skew = call.version === null ? null : skewRefusal('this client', call.version, musterVersion);
  if (skew !== null) return refused(new MusterError('failed_precondition', skew), identity);
  if (!mayCall(identity, path)) {
    const message = `${nameOfCaller(identity, token === null)} may not call ${path}`;
    return refuse('permission_denied', 'permission_denied', message, identity);
  }
  if (identity.kind === 'agent' && isStream && gate.calls.count(identity.id) >= agentStreamsMax) {
    const message = `${identity.node} has ${agentStreamsMax} streams open already; those that are broken end within minutes`;
    return refuse('too_many_streams', 'resource_exhausted', message, identity);
  }
  const known = identity.kind === 'user' ? { ...identity, use: jobUseOf(path) } : identity;
  const parent = call.traceparent === null ? null : parseTraceparent(call.traceparent);
  const caller = parent === null ? known : { ...known, traceparent: traceparentText(parent) };
  return { caller, refusal: null, shownBy: identity };
}

function refused(refusal: MusterError, shownBy: Identity | null): Established {
  return { caller: null, refusal, shownBy };
}

/** What a refused caller is told of itself. */
function nameOfCaller(identity: Identity, byCertificate: boolean): string {
  if (identity.kind !== 'user') return `this ${byCertificate ? 'certificate' : 'token'} (${identity.kind})`;
  return `this token of ${identity.user} (role ${identity.role}, which with this token allows: ${identity.verbs.join(', ')})`;
}

/** @param address of a socket: one of IPv4 that came by IPv6 is one of IPv4 */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}
