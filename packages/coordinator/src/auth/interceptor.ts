/**
 * Identity and authorisation of every call of gRPC, before any handler, as `establish.ts` decides. Handlers find who calls in
 * metadata that only this file can set.
 */
import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
  type ServerMethodDefinition,
} from '@grpc/grpc-js';
import type { MusterError } from '@muster/common/errors';
import { traceparentKey } from '@muster/common/traceContext';
import { versionKey } from '@muster/common/version';
import { statusOfCode } from '@muster/common/wire/statusCodes';
import type { Identity } from '../caller.ts';
import { type Established, type EstablishParts, establish, plainAddress } from './establish.ts';
import { type HasCertified, peerCertificate } from './peerCertificate.ts';

const identityKey = 'muster-identity';

export interface InterceptorParts extends EstablishParts {
  /** Called with each call that proved who makes it, by its peer as gRPC names it, `address:port`. */
  readonly authenticated: (peer: string, by: Identity) => void;
  readonly hasCertified: HasCertified;
}

export function authInterceptor(parts: InterceptorParts): ServerInterceptor {
  const { gate, authenticated } = parts;
  return (method: ServerMethodDefinition<unknown, unknown>, call: ServerInterceptingCallInterface) => {
    let over = () => {};
    const responder = new ResponderBuilder()
      .withStart((next) => {
        const listener = new ServerListenerBuilder()
          .withOnReceiveMetadata((metadata, nextListener) => {
            const { caller, refusal, shownBy } = authorise(parts, metadata, method, call);
            if (shownBy !== null) authenticated(call.getPeer(), shownBy);
            if (caller === null) {
              call.sendStatus(statusOf(refusal));
              return;
            }
            // A call with one answer has it in a moment, and the one that rotates the admin token needs it.
            if (isStream(method)) {
              over = gate.calls.add({
                by: caller,
                end: (why) => call.sendStatus(statusOf(why)),
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

/** What `establish` finds of a call of gRPC. Who makes it is noted in its metadata. */
function authorise(
  parts: InterceptorParts,
  metadata: Metadata,
  method: Method,
  call: ServerInterceptingCallInterface,
): Established {
  // A client that sends this key itself must not become the caller that it names.
  metadata.remove(identityKey);
  const established = establish(parts, {
    path: method.path,
    isStream: isStream(method),
    peer: addressOf(call.getPeer()),
    authorization: textOf(metadata, 'authorization'),
    certificate: () => peerCertificate(call, parts.hasCertified),
    version: textOf(metadata, versionKey),
    traceparent: textOf(metadata, traceparentKey),
  });
  if (established.caller !== null) identify(metadata, established.caller);
  return established;
}

function textOf(metadata: Metadata, key: string): string | null {
  const [value] = metadata.get(key);
  return typeof value === 'string' ? value : null;
}

function statusOf(error: MusterError): { readonly code: number; readonly details: string } {
  return { code: statusOfCode[error.code], details: error.message };
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
  return host === undefined ? null : plainAddress(host);
}

/** Who makes this call, as the interceptor established it. */
export function callerOf(call: { readonly metadata: Metadata }): Identity {
  const value = call.metadata.get(identityKey)[0];
  if (typeof value !== 'string') throw new Error('the call did not pass the interceptor');
  return JSON.parse(value) as Identity;
}
