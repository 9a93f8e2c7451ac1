/**
 * Sends readings to the coordinator, and the Prometheus page when it asks. On a stream of its own: telemetry may be late
 * or lost, heartbeats may not. What cannot be sent is kept for a while and then dropped, oldest first.
 */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '@muster/common/errors';
import type { TelemetryRequest__Output } from '@muster/common/gen/muster/v1/TelemetryRequest';
import type { TelemetryUpload } from '@muster/common/gen/muster/v1/TelemetryUpload';
import type { Logger } from '@muster/common/log';
import type { GpuReading, HostReading } from '@muster/common/telemetry';
import { gpuReadingToWire, hostReadingToWire } from '@muster/common/wire/codec';
import { uploadWaitMs } from '@muster/common/wire/uploadPace';

type TelemetryStream = ClientDuplexStream<TelemetryUpload, TelemetryRequest__Output>;

/** Ten minutes at the usual interval: a restart of the coordinator, not an outage of a night. */
const backlogMax = 60;
const reconnect = { initialMs: 500, maxMs: 5_000 };
const pageBytesMax = 4 * 1024 * 1024;

export interface TelemetryUploaderParts {
  readonly openStream: () => TelemetryStream;
  /** The Prometheus page as it is now. */
  readonly page: () => Promise<string>;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
}

export class TelemetryUploader {
  private readonly parts: TelemetryUploaderParts;
  private readonly backlog: TelemetryUpload[] = [];
  private stream: TelemetryStream | null = null;
  private redial: NodeJS.Timeout | null = null;
  private failures = 0;
  private closed = false;
  /** The coordinator has taken the stream, and the connection has room. What is written earlier is lost with the stream. */
  private isReady = false;

  constructor(parts: TelemetryUploaderParts) {
    this.parts = parts;
  }

  start(): void {
    if (this.closed) return;
    const stream = this.parts.openStream();
    this.stream = stream;
    this.isReady = false;
    stream.on('data', (request: TelemetryRequest__Output) => {
      this.failures = 0;
      void this.answer(stream, request.pageId);
    });
    const goOn = () => {
      if (this.stream !== stream) return;
      this.isReady = true;
      this.flush();
    };
    stream.on('metadata', () => {
      this.failures = 0;
      goOn();
    });
    stream.on('drain', goOn);
    stream.on('error', (error: Error) => this.lost(stream, error));
    stream.on('end', () => this.lost(stream, new Error('the coordinator ended the stream')));
  }

  send(gpus: readonly GpuReading[], host: HostReading | null): void {
    if (gpus.length === 0 && host === null) return;
    this.backlog.push({
      gpus: gpus.map(gpuReadingToWire),
      host: host === null ? null : hostReadingToWire(host),
    });
    if (this.backlog.length > backlogMax) this.backlog.shift();
    this.flush();
  }

  close(): void {
    this.closed = true;
    if (this.redial !== null) clearTimeout(this.redial);
    this.stream?.cancel();
    this.stream = null;
  }

  private flush(): void {
    while (this.stream !== null && this.isReady) {
      const next = this.backlog.shift();
      if (next === undefined) return;
      this.isReady = this.stream.write(next);
    }
  }

  private async answer(stream: TelemetryStream, pageId: number): Promise<void> {
    try {
      const text = await this.parts.page();
      // Cut in the middle it would be misread; empty, it shows as a scrape that found nothing.
      const fits = Buffer.byteLength(text) <= pageBytesMax;
      if (this.stream === stream) stream.write({ page: { pageId, text: fits ? text : '' } });
    } catch (error) {
      this.parts.log.warn({ error: messageOf(error) }, 'the Prometheus page could not be made');
    }
  }

  private lost(stream: TelemetryStream, error: Error): void {
    if (this.stream !== stream || this.closed) return;
    this.stream = null;
    stream.cancel();
    this.failures += 1;
    if (this.failures === 1)
      this.parts.log.info({ error: messageOf(error) }, 'the telemetry stream broke; opening it again');
    const waitMs = uploadWaitMs(reconnect, this.failures, error, this.parts.chance());
    this.redial = setTimeout(() => this.start(), waitMs);
  }
}
