/**
 * Identity and authorisation of every call, in one place, before any handler. Handlers find who calls in metadata that
 * only this file can set; TLS and roles will come in here without touching them.
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
import type { Identity } from '../caller.ts';
import type { Credential } from '../store/store.ts';
import { mayCall } from './policy.ts';
import { hashToken, identityOf } from './tokens.ts';

const identityKey = 'muster-identity';

export interface AuthParts {
  readonly findCredential: (secretHash: string) => Credential | undefined;
  readonly wallMs: () => number;
  /** To be told of each call that brought a valid token. @param peer as gRPC names it, `address:port` */
  readonly authenticated: (peer: string) => void;
}

export function authInterceptor(parts: AuthParts): ServerInterceptor {
  return (method: ServerMethodDefinition<unknown, unknown>, call: ServerInterceptingCallInterface) => {
    const responder = new ResponderBuilder()
      .withStart((next) => {
        const listener = new ServerListenerBuilder()
          .withOnReceiveMetadata((metadata, nextListener) => {
            const refusal = authorise(parts, metadata, method.path, addressOf(call.getPeer()));
            if (refusal?.code !== status.UNAUTHENTICATED) parts.authenticated(call.getPeer());
            if (refusal !== null) call.sendStatus(refusal);
            else nextListener(metadata);
          })
          .build();
        next(listener);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}

/** @returns the status to refuse with; null, with the identity in the metadata, for a call that may go on */
function authorise(
  parts: AuthParts,
  metadata: Metadata,
  path: string,
  peer: string | null,
): { code: status; details: string } | null {
  // A client that sends this key itself must not become whoever it names.
  metadata.remove(identityKey);
  const header = metadata.get('authorization')[0];
  const token =
    typeof header === 'string' && header.startsWith('Bearer ') ? header.slice('Bearer '.length) : null;
  if (token === null) {
    return {
      code: status.UNAUTHENTICATED,
      details: 'no token: send `authorization: Bearer <token>` with every call',
    };
  }
  const credential = parts.findCredential(hashToken(token));
  const identity = credential === undefined ? null : identityOf(credential, peer, parts.wallMs());
  if (identity === null) {
    return {
      code: status.UNAUTHENTICATED,
      details: 'the token is unknown to this coordinator, or has expired',
    };
  }
  if (!mayCall(identity, path)) {
    return { code: status.PERMISSION_DENIED, details: `this token (${identity.kind}) may not call ${path}` };
  }
  identify(metadata, identity);
  return null;
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
