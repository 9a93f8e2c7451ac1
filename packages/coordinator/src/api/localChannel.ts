/**
 * The calls of the API within this process, for what is served on top of it. Who calls, and whether they may, is established for each
 * call as if it had come from outside.
 */
import type { MethodDefinition } from '@grpc/proto-loader';
import { MusterError } from '@muster/common/errors';
import type { GrpcChannel } from '@muster/common/grpc/channel';
import { musterService } from '@muster/common/wire/service';
import { type EstablishParts, establish } from '../auth/establish.ts';
import type { Identity } from '../caller.ts';
import type { MusterCalls, StreamMethod, UnaryMethod } from '../rpc/calls.ts';

interface LocalParts extends EstablishParts {
  readonly calls: MusterCalls;
}

/** Whoever calls, by what they have shown. */
interface ShownCaller {
  /** The header of that name; null: none. */
  readonly authorization: string | null;
  /** Address of the client without its port; null: unknown. */
  readonly peer: string | null;
  /** The header of that name; null: none. */
  readonly traceparent: string | null;
}

type Method = MethodDefinition<object, object, object, object>;

const methods: ReadonlyMap<string, readonly [name: keyof MusterCalls, method: Method]> = new Map(
  Object.entries({ ...musterService }).map(([name, method]) => [
    method.path,
    [name as keyof MusterCalls, method as unknown as Method],
  ]),
);

/** A channel whose errors are those of the handlers. */
export function localChannel(parts: LocalParts, shown: ShownCaller): GrpcChannel {
  function accepted(path: string, isStream: boolean): Identity {
    const call = { ...shown, path, isStream, certificate: () => null, version: null };
    const { caller, refusal } = establish(parts, call);
    if (caller === null) throw refusal;
    return caller;
  }

  return {
    async unary(path, request) {
      const [name, method] = methodAt(path);
      const caller = accepted(path, false);
      const { handle } = parts.calls[name] as unknown as UnaryMethod<object, object>;
      return method.responseSerialize(await handle(method.requestDeserialize(Buffer.from(request)), caller));
    },

    async *stream(path, request, abort) {
      const [name, method] = methodAt(path);
      const caller = accepted(path, true);
      const over = new AbortController();
      const ended: { why: MusterError | null } = { why: null };
      const closed = parts.gate.calls.add({
        by: caller,
        end(why) {
          ended.why = why;
          over.abort();
        },
      });
      const signal = abort === undefined ? over.signal : AbortSignal.any([abort, over.signal]);
      try {
        const { produce } = parts.calls[name] as unknown as StreamMethod<object, object>;
        const messages = await produce(method.requestDeserialize(Buffer.from(request)), signal, caller);
        for await (const message of messages) {
          if (signal.aborted) break;
          yield method.responseSerialize(message);
        }
        if (ended.why !== null) throw ended.why;
      } finally {
        over.abort();
        closed();
      }
    },

    close() {},
  };
}

function methodAt(path: string): readonly [keyof MusterCalls, Method] {
  const found = methods.get(path);
  if (found === undefined) throw new MusterError('internal', `there is no call ${path}`);
  return found;
}
