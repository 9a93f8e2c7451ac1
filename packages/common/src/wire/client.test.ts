/** What is asked and what is answered, over a real connection. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import type { Condition } from '../conditions.ts';
import { emptyInventory } from '../hardware.ts';
import type { JobId } from '../ids.ts';
import type { MetricsView, NodeTelemetry } from '../telemetry.ts';
import type { NodeView } from '../views.ts';
import { connectMuster, type MusterApi } from './client.ts';
import { metricsToWire, nodeTelemetryToWire, nodeToWire } from './codec.ts';
import { musterService } from './service.ts';

/** Answers one method and remembers what it was asked. */
async function apiOf(method: keyof typeof musterService, answer: unknown) {
  const requests: unknown[] = [];
  const server = new Server();
  const { [method]: definition } = musterService;
  server.addService({ [method]: definition } as never, {
    [method]: (
      call: { readonly request: unknown },
      callback: (error: null, response: unknown) => void,
    ): void => {
      requests.push(call.request);
      callback(null, answer);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const api: MusterApi = connectMuster({ address: `127.0.0.1:${port}`, token: 't' });
  onTestFinished(() => {
    api.close();
    server.forceShutdown();
  });
  return { api, requests };
}

const jobId = 'job_0123456789ab' as JobId;

test('metrics are asked for by name, attempt and age; what was not read stays null', async () => {
  const view: MetricsView = {
    unit: 'percent',
    series: [
      {
        attempt: 2,
        nodeRank: 1,
        node: 'node-1',
        gpuUuid: 'GPU-0',
        points: [
          { atMs: 1_000, value: 0 },
          { atMs: 11_000, value: null },
        ],
      },
    ],
  };
  const { api, requests } = await apiOf('QueryMetrics', metricsToWire(view));
  const query = { jobId, name: 'gpu_utilization' } as const;
  expect(await api.queryMetrics({ ...query, sinceMs: 60_000, attempt: 2 })).toEqual(view);
  await api.queryMetrics(query);
  expect(requests).toMatchObject([{ ...query, sinceMs: 60_000, attempt: 2 }, query]);
});

test('telemetry is asked for of one node or of all', async () => {
  const telemetry: NodeTelemetry = {
    node: 'node-1',
    host: {
      atMs: 1_000,
      intervalMs: 10_000,
      cpuUtilization: 0,
      memoryUsedMb: null,
      load1: 0.5,
      networkReceiveBytes: 1,
      networkTransmitBytes: null,
    },
    gpus: [
      {
        gpuUuid: 'GPU-0',
        atMs: 1_000,
        intervalMs: 10_000,
        task: { jobId, attempt: 1, nodeRank: 0 },
        utilization: 0,
        memoryUsedMb: 12,
        powerWatts: null,
        energyJoules: null,
        smActive: 0.5,
        tensorActive: null,
        dramActive: null,
        temperature: 40,
        nvlinkReceiveBytes: null,
        nvlinkTransmitBytes: null,
      },
    ],
  };
  const { api, requests } = await apiOf('ListTelemetry', { nodes: [nodeTelemetryToWire(telemetry)] });
  expect(await api.listTelemetry()).toEqual([telemetry]);
  await api.listTelemetry('node-1');
  expect(requests).toMatchObject([{}, { node: 'node-1' }]);
  expect(requests[0]).toEqual({});
});

test('a condition is cleared by kind and place; the answer is the node without it', async () => {
  const left: Condition = {
    kind: 'disk_full',
    gpuUuid: null,
    severity: 'warning',
    action: 'note',
    message: 'The disk of /data is full.',
    evidence: '/data',
    sinceMs: 1_000,
    lastSeenAtMs: 2_000,
    count: 3,
    clears: 'when_gone',
    task: { jobId, attempt: 1, nodeRank: 0 },
  };
  const node: NodeView = {
    name: 'node-1',
    state: 'online',
    inventory: emptyInventory,
    agentVersion: '0.1.0',
    joinedAtMs: 1,
    silentForMs: null,
    gpuUses: [],
    cpusUsed: 0,
    memoryUsedMb: 0,
    conditions: [left],
    drained: true,
    drainedGpuUuids: ['GPU-1'],
    fencedInMs: null,
    bandwidths: [],
    drain: null,
    tasks: [],
    orphans: [],
  };
  const { api, requests } = await apiOf('ClearCondition', nodeToWire(node));
  expect(await api.clearCondition({ node: 'node-1', kind: 'xid_79', gpuUuid: 'GPU-0' })).toEqual(node);
  await api.clearCondition({ node: 'node-1', kind: 'disk_full', gpuUuid: null });
  expect(requests[0]).toMatchObject({ node: 'node-1', kind: 'xid_79', gpuUuid: 'GPU-0' });
  expect(requests[1]).toEqual({ node: 'node-1', kind: 'disk_full' });
});
