/** Profiling values of a dcgm-exporter that runs on this node. */
import { Agent, get, type IncomingMessage } from 'node:http';
import { MusterError } from '@muster/common/errors';
import type { Gpu } from '@muster/common/hardware';
import type { GpuActivity, ProfilingSource } from '../gpuSource.ts';
import { type ExporterReading, parseExporterPage } from './exporterText.ts';

export interface DcgmExporterOptions {
  /** `http://127.0.0.1:9400/metrics`; redirects are not followed. */
  readonly url: string;
  /** For the whole page. */
  readonly timeoutMs?: number;
  /** Devices last listed, to distinguish MIG instances: the exporter knows them only by card and number. */
  readonly devices: () => readonly Gpu[];
}

const defaultTimeoutMs = 3_000;
/** A page of 16 cards with all series on and labels of Kubernetes stays under 1 MB. */
const pageBytesMax = 4 * 1024 * 1024;

/** @throws {MusterError} for a URL that is none, or not of HTTP */
export function createDcgmExporterSource(options: DcgmExporterOptions): ProfilingSource {
  const url = exporterUrl(options.url);
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  // One connection, kept: a page every few seconds should not cost a handshake each.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const closing = new AbortController();
  let underway: Promise<ReadonlyMap<string, GpuActivity>> | null = null;

  async function read(): Promise<ReadonlyMap<string, GpuActivity>> {
    const deadline = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([deadline, closing.signal]);
    const text = await fetchPage(url, agent, signal).catch((error: unknown) => {
      throw new Error(`dcgm-exporter at ${url.href} ${failureOf(error, deadline.aborted, timeoutMs)}`, {
        cause: error,
      });
    });
    const { readings, seriesCount } = parseExporterPage(text);
    if (seriesCount === 0)
      throw new Error(`dcgm-exporter at ${url.href} answered with something other than metrics`);
    if (readings.length === 0)
      throw new Error(
        `dcgm-exporter at ${url.href} has no DCGM_FI_PROF_ series with a UUID: turn them on in its list of counters`,
      );
    return byDevice(readings, options.devices());
  }

  return {
    name: 'dcgm-exporter',
    sample() {
      underway ??= read().finally(() => {
        underway = null;
      });
      return underway;
    },
    async close() {
      closing.abort();
      agent.destroy();
      await underway?.catch(() => undefined);
    },
  };
}

function exporterUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'http:' || url.hostname === '')
    throw new MusterError(
      'invalid',
      `The URL of dcgm-exporter, ${JSON.stringify(text)}, is not understood; write one like http://127.0.0.1:9400/metrics.`,
    );
  return url;
}

function fetchPage(url: URL, agent: Agent, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, signal, headers: { accept: 'text/plain' } }, (answer) => {
      collect(answer).then(resolve, (error: unknown) => {
        // What is left of the answer is not worth reading to keep the connection.
        request.destroy();
        reject(error);
      });
    });
    request.on('error', reject);
  });
}

async function collect(answer: IncomingMessage): Promise<string> {
  if (answer.statusCode !== 200) throw new Error(`answered with status ${answer.statusCode}`);
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > pageBytesMax) throw new Error(`sent more than ${pageBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function failureOf(error: unknown, isLate: boolean, timeoutMs: number): string {
  if (isLate) return `did not answer within ${timeoutMs} ms`;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'is not running: nothing listens there';
  return /^(?:answered|sent) /.test(message) ? message : `cannot be read: ${message}`;
}

/**
 * Of an instance that several compute instances share, it is not known whose work a value is: those get none.
 */
function byDevice(
  readings: readonly ExporterReading[],
  devices: readonly Gpu[],
): ReadonlyMap<string, GpuActivity> {
  const found = new Map<string, GpuActivity>();
  for (const { cardUuid, gpuInstanceId, activity } of readings) {
    if (gpuInstanceId === null) {
      found.set(cardUuid, activity);
      continue;
    }
    const [device, ...others] = devices.filter(
      ({ mig }) => mig?.parentUuid === cardUuid && mig.gpuInstanceId === gpuInstanceId,
    );
    if (device !== undefined && others.length === 0) found.set(device.uuid, activity);
  }
  return found;
}
