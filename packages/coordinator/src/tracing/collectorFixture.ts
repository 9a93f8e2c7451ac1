/** A collector of OpenTelemetry, for tests: a real HTTP server that takes apart what it gets, and refuses what it does not know. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import protobuf from 'protobufjs';

/** Of opentelemetry/proto/trace/v1 and common/v1, what the exporter may send. */
const schema = `
syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; uint32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  uint32 dropped_attributes_count = 10; repeated bytes events = 11; uint32 dropped_events_count = 12;
  repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15; fixed32 flags = 16;
}
message Link { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4;
  uint32 dropped_attributes_count = 5; fixed32 flags = 6; }
message Status { string message = 2; uint32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
  ArrayValue array_value = 5; } }
message ArrayValue { repeated AnyValue values = 1; }
`;
const requestType = protobuf.parse(schema, { keepCase: false }).root.lookupType('Request');

interface WireValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly WireValue[] };
}

type WireAttributes = readonly { readonly key: string; readonly value: WireValue }[];

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: WireAttributes;
  readonly links?: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly attributes: WireAttributes;
  }[];
  readonly status?: { readonly message: string; readonly code: number };
  readonly flags: number;
}

interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: WireAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

/** A span as the collector has received it. Ids are hexadecimal digits, times epoch milliseconds. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it is a root. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** null: it has ended well. */
  readonly error: string | null;
  /** The parent is another program's. */
  readonly hasRemoteParent: boolean;
  readonly links: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
}

export type Collector = Awaited<ReturnType<typeof startCollector>>;

/** Answers as `answer` says: with a status, or never. */
export async function startCollector() {
  const spans: ReceivedSpan[] = [];
  const resources: Readonly<Record<string, unknown>>[] = [];
  const held: ServerResponse[] = [];
  const collector = { answer: 200 as number | 'never', requests: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      collector.requests += 1;
      const { answer } = collector;
      if (answer === 'never') {
        held.push(response);
        return;
      }
      const isRight =
        request.url === '/v1/traces' &&
        request.method === 'POST' &&
        request.headers['content-type'] === 'application/x-protobuf';
      const status = isRight ? answer : 404;
      if (status === 200) {
        const received = strictlyDecoded(Buffer.concat(chunks));
        resources.push(...received.map(({ resource }) => valuesOf(resource.attributes)));
        spans.push(
          ...received.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans.map(spanOf)),
        );
      }
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(collector, {
    url: `http://127.0.0.1:${port}`,
    spans,
    resources,
    async close(): Promise<void> {
      for (const response of held) response.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function strictlyDecoded(body: Buffer): WireRequest['resourceSpans'] {
  const message = requestType.decode(body);
  // What is not in the schema would be missing.
  if (requestType.encode(message).finish().length !== body.length)
    throw new Error('the body has fields that OTLP does not have');
  const request = requestType.toObject(message, { longs: String, arrays: true }) as WireRequest;
  return request.resourceSpans;
}

function spanOf(wire: WireSpan): ReceivedSpan {
  return {
    traceId: hex(wire.traceId),
    spanId: hex(wire.spanId),
    parentSpanId: hex(wire.parentSpanId ?? ''),
    name: wire.name,
    startMs: Number(BigInt(wire.startTimeUnixNano) / 1_000_000n),
    endMs: Number(BigInt(wire.endTimeUnixNano) / 1_000_000n),
    attributes: valuesOf(wire.attributes),
    error: wire.status?.code === 2 ? wire.status.message : null,
    hasRemoteParent: (wire.flags & 0x200) !== 0,
    links: (wire.links ?? []).map(({ traceId, spanId, attributes }) => {
      return { traceId: hex(traceId), spanId: hex(spanId), attributes: valuesOf(attributes) };
    }),
  };
}

function hex(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as Uint8Array).toString('hex');
}

function valuesOf(attributes: WireAttributes): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf({ stringValue, intValue, doubleValue, arrayValue }: WireValue): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(valueOf);
  if (intValue !== undefined) return Number(intValue);
  return stringValue ?? doubleValue;
}
