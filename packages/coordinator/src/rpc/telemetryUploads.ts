/** Receives the readings of nodes, and asks them for their Prometheus pages. */
import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { MusterError } from '@muster/common/errors';
import type { TelemetryRequest } from '@muster/common/gen/muster/v1/TelemetryRequest';
import type { TelemetryUpload__Output } from '@muster/common/gen/muster/v1/TelemetryUpload';
import type { Logger } from '@muster/common/log';
import { gpuReadingFromWire, hostReadingFromWire } from '@muster/common/wire/codec';
import { callerOf } from '../auth/interceptor.ts';
import type { PageRequests, PageStream } from '../telemetry/pageRequests.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import type { NodeAllowances, Rate } from '../work/allowance.ts';
import { RefusedMessage } from './bounds/bounded.ts';
import { endWithError } from './calls.ts';

/** A node has an upload every 10 s. What it kept while it was cut off, ten minutes at most, may come at once. */
export const uploadRate: Rate = { perSecond: 1, atOnce: 120 };
/** How long a node that sends more is not listened to. */
const pauseMs = 1_000;

export interface TelemetryUploadParts {
  readonly telemetry: TelemetryStore;
  readonly pages: PageRequests;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

/**
 * One stream per agent. Nothing that it says ends it: readings that make no sense are dropped and counted, and one that
 * says too much is left waiting, so that a flood costs nobody else a heartbeat.
 */
export function serveTelemetry(
  parts: TelemetryUploadParts,
  allowances: NodeAllowances,
  call: ServerDuplexStream<TelemetryUpload__Output, TelemetryRequest>,
): void {
  const caller = callerOf(call);
  if (caller.kind !== 'agent') {
    endWithError(call, new MusterError('permission_denied', 'only agents send telemetry'));
    return;
  }
  const { node } = caller;
  const { telemetry, pages } = parts;
  const stream: PageStream = { ask: (pageId) => void call.write({ pageId }) };
  let pause: NodeJS.Timeout | null = null;
  pages.add(node, stream);
  // Else nothing tells the agent that its stream is accepted: we may have no question for hours.
  call.sendMetadata(new Metadata());

  const waitAMoment = () => {
    if (pause !== null) return;
    parts.log.debug({ node }, 'a node sends telemetry too fast and is paused briefly');
    call.pause();
    pause = setTimeout(() => {
      pause = null;
      call.resume();
    }, pauseMs);
  };

  call.on('data', (upload: TelemetryUpload__Output) => {
    // It is of no use to end the stream for what may be lost. To look it over has cost as much as taking it.
    if (upload instanceof RefusedMessage) {
      parts.log.debug({ node, error: upload.error.message }, 'telemetry of a node was rejected');
      if (!allowances.take(node)) waitAMoment();
      return;
    }
    const { gpus, host, page } = upload;
    const isAnswer = page !== null && pages.answer(node, stream, page.pageId, page.text);
    if (isAnswer && gpus.length === 0 && host === null) return;
    if (!allowances.take(node)) {
      telemetry.dropped.too_fast += gpus.length;
      waitAMoment();
      return;
    }
    // Of an older connection: what still trickles in there is history.
    if (!pages.isCurrent(node, stream)) return;
    for (const wire of gpus) telemetry.addGpu(node, gpuReadingFromWire(wire));
    if (host !== null) telemetry.addHost(node, hostReadingFromWire(host));
  });
  const closed = () => {
    if (pause !== null) clearTimeout(pause);
    pages.remove(node, stream);
  };
  call.on('end', () => {
    closed();
    call.end();
  });
  call.on('cancelled', closed);
  call.on('error', closed);
}
