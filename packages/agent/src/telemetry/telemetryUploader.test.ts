import { Metadata } from '@grpc/grpc-js';
import { silentLogger } from '@muster/common/log';
import type { GpuReading } from '@muster/common/telemetry';
import { expect, onTestFinished, test, vi } from 'vitest';
import { TestHub } from '../hubFixture.ts';
import { TelemetryUploader } from './telemetryUploader.ts';

function aReading(atMs: number): GpuReading {
  return {
    gpuUuid: 'GPU-1',
    atMs,
    intervalMs: 10_000,
    task: null,
    utilization: 0,
    memoryUsedMb: null,
    powerWatts: null,
    energyJoules: null,
    smActive: null,
    tensorActive: null,
    dramActive: null,
    temperature: null,
    nvlinkReceiveBytes: null,
    nvlinkTransmitBytes: null,
  };
}

async function anUploader(page: () => Promise<string> = async () => 'up 1\n') {
  const hub = await TestHub.start();
  const client = hub.client();
  const logged: string[] = [];
  const uploader = new TelemetryUploader({
    openStream: () => client.UploadTelemetry(),
    page,
    log: { ...silentLogger, info: (_fields, message) => logged.push(message) },
    chance: () => 0,
  });
  onTestFinished(() => uploader.close());
  uploader.start();
  await accept(hub, 0);
  /** The uploader knows that its first stream is gone. */
  const broken = () => vi.waitFor(() => expect(logged).toHaveLength(1));
  return { hub, uploader, broken };
}

/** The coordinator takes the stream of this number, which it says by sending its headers. */
async function accept(hub: TestHub, number: number): Promise<void> {
  await vi.waitFor(() => expect(hub.telemetryCalls.length).toBeGreaterThan(number));
  hub.telemetryCalls[number]?.sendMetadata(new Metadata());
}

const times = (hub: TestHub) => hub.telemetry.flatMap(({ gpus }) => gpus.map(({ atMs }) => atMs));

test('readings arrive, and what was not read is absent there', async () => {
  const { hub, uploader } = await anUploader();
  uploader.send([aReading(1)], null);
  await vi.waitFor(() => expect(times(hub)).toEqual([1]));
  expect(hub.telemetry[0]?.gpus[0]?.utilization).toBe(0);
  expect(hub.telemetry[0]?.gpus[0]).not.toHaveProperty('powerWatts');
});

test('nothing is sent when there is nothing to say', async () => {
  const { hub, uploader } = await anUploader();
  uploader.send([], null);
  uploader.send([aReading(2)], null);
  await vi.waitFor(() => expect(times(hub)).toEqual([2]));
  expect(hub.telemetry).toHaveLength(1);
});

test('a coordinator that comes back gets what was measured meanwhile, but not of a whole night', async () => {
  const { hub, uploader, broken } = await anUploader();
  uploader.send([aReading(1)], null);
  await vi.waitFor(() => expect(times(hub)).toEqual([1]));
  hub.crash();
  await broken();
  for (let at = 100; at < 200; at += 1) uploader.send([aReading(at)], null);
  await hub.serve();
  await accept(hub, 1);
  await vi.waitFor(() => expect(times(hub).at(-1)).toBe(199));
  expect(times(hub)).toEqual([1, ...Array.from({ length: 60 }, (_, index) => 140 + index)]);
});

test('streams that the coordinator does not take cost no readings', async () => {
  const { hub, uploader, broken } = await anUploader();
  hub.crash();
  await broken();
  for (let round = 1; round <= 3; round += 1) {
    uploader.send([aReading(99 + round)], null);
    await hub.serve();
    await vi.waitFor(() => expect(hub.telemetryCalls.length).toBeGreaterThan(round));
    hub.crash();
  }
  await hub.serve();
  await accept(hub, 4);
  await vi.waitFor(() => expect(times(hub)).toEqual([100, 101, 102]));
});

test('the page is sent when it is asked for', async () => {
  const { hub } = await anUploader();
  await vi.waitFor(() => expect(hub.telemetryCalls).toHaveLength(1));
  hub.telemetryCalls[0]?.write({ pageId: 7 });
  await vi.waitFor(() =>
    expect(hub.telemetry.map(({ page }) => page)).toEqual([{ pageId: 7, text: 'up 1\n' }]),
  );
});

test('a page that is too large is not sent in part', async () => {
  const { hub } = await anUploader(async () => 'x'.repeat(5 * 1024 * 1024));
  await vi.waitFor(() => expect(hub.telemetryCalls).toHaveLength(1));
  hub.telemetryCalls[0]?.write({ pageId: 8 });
  await vi.waitFor(() => expect(hub.telemetry.map(({ page }) => page)).toEqual([{ pageId: 8, text: '' }]));
});

test('a page that cannot be made ends nothing', async () => {
  const { hub, uploader } = await anUploader(() => Promise.reject(new Error('no figures')));
  await vi.waitFor(() => expect(hub.telemetryCalls).toHaveLength(1));
  hub.telemetryCalls[0]?.write({ pageId: 9 });
  uploader.send([aReading(5)], null);
  await vi.waitFor(() => expect(times(hub)).toEqual([5]));
});
