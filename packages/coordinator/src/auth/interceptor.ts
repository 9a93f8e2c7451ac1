/**
 * Identity and authorisation of every call, in one place, before any handler. Handlers find who calls in metadata that
 * only this file can set; roles will come in here without touching them.
 *
 * People and joining agents send a token. Agents that have joined prove themselves by the certificate of their connection, or,
 * on loopback without TLS, by a secret that they send as a token.
 */
import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
  type ServerMethodDefinition,
  status,
} from '@grpc/grpc-js';
import { musterVersion, skewRefusal, versionKey } from '@muster/common/version';
import { statusOfCode } from '@muster/common/wire/statusCodes';
import type { Identity } from '../caller.ts';
import { keyHashOf } from '../tls/nodeCertificates.ts';
import type { Gate } from './gate.ts';
import { isForAnyone, jobUseOf, mayCall } from './policy.ts';
import type { RefusalKind } from './refusals.ts';
import { hashToken } from './tokens.ts';

const identityKey = 'muster-identity';

/**
 * Streams that are open at a time under the credential of one agent. It has four; those of connections that broke without being
 * closed stay until that is detected, a minute or so, and it dials again meanwhile. Each takes memory, whatever is sent on it.
 */
export const agentStreamsMax = 256;

export interface InterceptorParts {
  readonly gate: Gate;
  /** Whether connections are encrypted: agents show certificates then, and no secret of theirs is taken. */
  readonly encrypted: boolean;
  /** Called with each call that proved who makes it, by its peer as gRPC names it, `address:port`. */
  readonly authenticated: (peer: string, by: Identity) => void;
}

export function authInterceptor(parts: InterceptorParts): ServerInterceptor {
  const { gate, authenticated } = parts;
  return (method: ServerMethodDefinition<unknown, unknown>, call: ServerInterceptingCallInterface) => {
    let over = () => {};
    const responder = new ResponderBuilder()
      .withStart((next) => {
        const listener = new ServerListenerBuilder()
          .withOnReceiveMetadata((metadata, nextListener) => {
            const answer = authorise(parts, metadata, method, call);
            const isRefused = 'code' in answer;
            const by = isRefused ? answer.by : answer;
            if (by !== null && by.kind !== 'anonymous') authenticated(call.getPeer(), by);
            if (isRefused) {
              call.sendStatus(answer);
              return;
            }
            // A call with one answer has it in a moment, and the one that rotates the admin token needs it.
            if (isStream(method)) {
              over = gate.calls.add({
                by: answer,
                end: (why) => call.sendStatus({ code: statusOfCode[why.code], details: why.message }),
              });
            }
            nextListener(metadata);
          })
          .withOnCancel(() => over())
          .build();
        next(listener);
      })
      .withSendStatus((answer, next) => {
        over();
        next(answer);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}

type Method = Pick<ServerMethodDefinition<unknown, unknown>, 'path' | 'requestStream' | 'responseStream'>;

interface Refused {
  readonly code: status;
  readonly details: string;
  /** Who has shown a valid token anyway. */
  readonly by: Identity | null;
}

/** @returns the status to refuse with; or, with it in the metadata, the identity of a call that may go on */
function authorise(
  { gate, encrypted }: InterceptorParts,
  metadata: Metadata,
  method: Method,
  call: ServerInterceptingCallInterface,
): Refused | Identity {
  // A client that sends this key itself must not become the caller that it names.
  metadata.remove(identityKey);
  const { path } = method;
  const peer = addressOf(call.getPeer());
  const refuse = (kind: RefusalKind, code: status, details: string, by: Identity | null = null): Refused => {
    gate.refusals.note({ kind, method: path, peer, by: by?.id ?? null });
    return { code, details, by };
  };
  if (isForAnyone(path)) {
    // Each counts as a failure: a caller without a credential may ask as often as one with a wrong credential.
    if (!gate.refusals.mayFail(peer))
      return refuse('too_many_failures', status.RESOURCE_EXHAUSTED, 'too many calls from this address; wait');
    const nobody = { kind: 'anonymous', id: 'anonymous', peer } as const;
    identify(metadata, nobody);
    return nobody;
  }
  const header = metadata.get('authorization')[0];
  const token =
    typeof header === 'string' && header.startsWith('Bearer ') ? header.slice('Bearer '.length) : null;
  const certificate = token === null ? verifiedCertificate(call) : null;
  const shown = token === null ? (certificate === null ? null : keyHashOf(certificate)) : hashToken(token);
  const identity = shown === null ? null : gate.identify(shown, peer);
  if (identity?.kind === 'agent' && encrypted && token !== null) {
    const details =
      `the agent of ${identity.node} joined before this coordinator had TLS, and has no certificate yet: ` +
      `muster token create ${identity.node} --replace, and start the agent with that token`;
    return refuse('unauthenticated', status.UNAUTHENTICATED, details);
  }
  if (identity === null) {
    // Only who fails is counted: a valid token behind the same address is never held up.
    if (!gate.refusals.mayFail(peer)) {
      const details =
        'too many calls without a valid token or certificate from this address; wait, and use a valid one';
      return refuse('too_many_failures', status.RESOURCE_EXHAUSTED, details);
    }
    const expiry = shown === null ? null : gate.expiryOf(shown);
    const details =
      expiry !== null
        ? expiry.message
        : token !== null
          ? 'the token is unknown to this coordinator, or it has expired or been revoked'
          : certificate !== null
            ? 'the certificate is unknown to this coordinator, or it has expired or been revoked'
            : 'no token: send `authorization: Bearer <token>` with every call' +
              (encrypted
                ? '; and no certificate of a node that this cluster has made and that is valid now'
                : '');
    return refuse('unauthenticated', status.UNAUTHENTICATED, details);
  }
  const [theirs] = metadata.get(versionKey);
  const skew = typeof theirs === 'string' ? skewRefusal('this client', theirs, musterVersion) : null;
  if (skew !== null) return { code: status.FAILED_PRECONDITION, details: skew, by: identity };
  if (!mayCall(identity, path)) {
    const details = `${nameOfCaller(identity, token === null)} may not call ${path}`;
    return refuse('permission_denied', status.PERMISSION_DENIED, details, identity);
  }
  if (identity.kind === 'agent' && isStream(method) && gate.calls.count(identity.id) >= agentStreamsMax) {
    const details = `${identity.node} has ${agentStreamsMax} streams open already; those that are broken end within minutes`;
    return refuse('too_many_streams', status.RESOURCE_EXHAUSTED, details, identity);
  }
  identify(metadata, identity.kind === 'user' ? { ...identity, use: jobUseOf(path) } : identity);
  return identity;
}

/** What a refused caller is told of itself. */
function nameOfCaller(identity: Identity, byCertificate: boolean): string {
  if (identity.kind !== 'user') return `this ${byCertificate ? 'certificate' : 'token'} (${identity.kind})`;
  return `this token of ${identity.user} (role ${identity.role}, which with this token allows: ${identity.verbs.join(', ')})`;
}

/**
 * DER of the certificate that the client has shown and proved to hold the key of. null: none, or one that the CA of this cluster
 * has not made, or that is not valid by this machine's clock.
 */
function verifiedCertificate(call: ServerInterceptingCallInterface): Uint8Array | null {
  return call.getAuthContext().sslPeerCertificate?.raw ?? null;
}

function isStream({ requestStream, responseStream }: Method): boolean {
  return requestStream || responseStream;
}

/** Notes in a call's metadata who makes it, for `callerOf`. */
export function identify(metadata: Metadata, identity: Identity): void {
  metadata.set(identityKey, JSON.stringify(identity));
}

/** @param peer `host:port` as gRPC tells it, with brackets around IPv6 or without */
function addressOf(peer: string): string | null {
  const host = /^(.*):\d+$/.exec(peer)?.[1]?.replace(/^\[(.*)\]$/, '$1');
  return host?.replace(/^::ffff:(?=\d+\.)/, '') ?? null;
}

/** Who makes this call, as the interceptor established it. */
export function callerOf(call: { readonly metadata: Metadata }): Identity {
  const value = call.metadata.get(identityKey)[0];
  if (typeof value !== 'string') throw new Error('the call did not pass the interceptor');
  return JSON.parse(value) as Identity;
}
