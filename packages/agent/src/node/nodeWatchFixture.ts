/** A watch over a node whose driver the test plays, without an agent around it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@muster/common/clock';
import type { TaskRef } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { onTestFinished } from 'vitest';
import { nvmlReaderCommand } from '../gpus/nvml/command.ts';
import { HostInventory } from '../host/inventory.ts';
import { TestHub } from '../hubFixture.ts';
import { type AgentOptions, agentDefaults } from '../options.ts';
import { boottimeMs } from '../probes/boot.ts';
import { NodeWatch, type NodeWatchParts } from './nodeWatch.ts';

const readerScript = fileURLToPath(new URL('../gpus/nvml/main.ts', import.meta.url));

export function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'node-watch-'));
  onTestFinished(() => rmSync(directory, { recursive: true, maxRetries: 3 }));
  return directory;
}

/** A node on which nothing is: neither a driver nor an exporter, Docker or a kernel log. */
export function bareOptions(dataDir: string, change: Partial<AgentOptions> = {}): AgentOptions {
  return {
    ...agentDefaults,
    dataDir,
    name: 'a',
    coordinator: '127.0.0.1:1',
    joinToken: null,
    nvmlLibrary: join(dataDir, 'no-nvml.so'),
    nvidiaSmiPath: join(dataDir, 'no-nvidia-smi'),
    dcgmiPath: join(dataDir, 'no-dcgmi'),
    dcgmExporterUrl: 'http://127.0.0.1:1/metrics',
    nvmlReaderCommand: nvmlReaderCommand(process.execPath, readerScript),
    dockerSocket: join(dataDir, 'no-docker.sock'),
    guardCommand: ['/bin/false'],
    rootTasks: 'allow',
    metricsListen: null,
    kernelLog: join(dataDir, 'no-kernel-log'),
    profilingSource: 'off',
    sampleIntervalMs: 100,
    logLevel: 'silent',
    ...change,
  };
}

export interface WatchedNode {
  readonly watch: NodeWatch;
  readonly hub: TestHub;
  /** What runs, with its GPUs. */
  readonly running: { readonly task: TaskRef; readonly gpuUuids: readonly string[] }[];
  /** The Prometheus page, as the coordinator fetches it. */
  page(): Promise<string>;
}

export async function watchNode(
  options: AgentOptions,
  change: Partial<NodeWatchParts> = {},
): Promise<WatchedNode> {
  const hub = await TestHub.start();
  const client = hub.client();
  const running: WatchedNode['running'] = [];
  const watch = new NodeWatch({
    options,
    log: silentLogger,
    clock: systemClock,
    probeGuard: async () => ({ state: 'absent', detail: '' }),
    hostInventory: new HostInventory({ monotonicMs: systemClock.monotonicMs }),
    bootId: 'boot-1',
    boottimeMs,
    searchPath: process.env['PATH'] ?? '',
    libraryPath: null,
    chance: () => 0,
    running: () => running,
    reports: () => [],
    training: { observe: () => {} },
    usageFileOf: ({ jobId }) => join(options.dataDir, `${jobId}.json`),
    openTelemetryStream: () => client.UploadTelemetry(),
    connection: () => ({ connected: true, heartbeatAgeMs: 0 }),
    onStatusChange: () => {},
    onKernelRecord: () => {},
    ...change,
  });
  onTestFinished(() => watch.close());
  let asked = 0;
  return {
    watch,
    hub,
    running,
    page: () => pageOf(hub, (asked += 1)),
  };
}

async function pageOf(hub: TestHub, pageId: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const look = setInterval(() => {
    const text = hub.telemetry.find(({ page }) => page?.pageId === pageId)?.page?.text;
    if (text !== undefined) resolve(text);
  }, 10);
  const ask = setInterval(() => {
    const call = hub.telemetryCalls.at(-1);
    if (call === undefined) return;
    clearInterval(ask);
    call.write({ pageId });
  }, 10);
  try {
    return await promise;
  } finally {
    clearInterval(look);
    clearInterval(ask);
  }
}
