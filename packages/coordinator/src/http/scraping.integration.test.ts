/** A real Prometheus on a coordinator whose agents are played by the test: what discovery promises is what is scraped. */
import { metricNamed, namedMetrics } from '@muster/common/metricNames';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { configErrors, type Prometheus, startPrometheus } from '../../../../test/support/prometheus.ts';
import { tempDir, waitFor } from '../../../../test/support/services.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { historyFrom } from '../prometheus/metricHistory.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { openAgentStream, storeNode } from '../telemetry/agentStreamFixture.ts';
import { runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

let coordinator: TestCoordinator;
let prometheus: Prometheus;
beforeEach(async () => {
  const memory = new Memory('test');
  for (const name of ['node-1', 'node-2', 'node-3']) storeNode(memory, name);
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory });
  prometheus = await startPrometheus(`${coordinator.httpUrl}/sd`, tempDir('prometheus').path);
});
afterEach(async () => {
  await prometheus?.stop();
  await coordinator.close();
});

const pageOf = (node: string, utilization: number) => () =>
  `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-${node}-0",Hostname="${node}",muster_job="${runningJobId}"} ${utilization}
`;

test('Prometheus scrapes every node through the coordinator and answers a query per job', async () => {
  openAgentStream(coordinator, 'node-1', pageOf('node-1', 91));
  openAgentStream(coordinator, 'node-2', pageOf('node-2', 17));
  await vi.waitFor(() => expect(coordinator.pages.connected).toBe(2));
  const promQl = `DCGM_FI_DEV_GPU_UTIL{muster_job="${runningJobId}"}`;
  const found = await waitFor('both nodes were scraped', () => prometheus.query(promQl), {
    until: ({ length }) => length === 2,
  });
  const byNode = found.map(({ metric, value }) => [metric['instance'], metric['node'], metric['gpu'], value]);
  expect(byNode.sort((a, b) => String(a).localeCompare(String(b)))).toEqual([
    ['node-1', 'node-1', '0', 91],
    ['node-2', 'node-2', '0', 17],
  ]);
  // What the coordinator asks of it, for the same job.
  const metric = metricNamed('gpu_utilization') ?? expect.fail('there is no such metric');
  const question = { metric, jobIds: [runningJobId], nodes: null, attempt: null, stepMs: 10_000 };
  const range = { fromMs: Date.now() - 600_000, toMs: Date.now() + 60_000, withJobs: true };
  const of = (value: number): unknown => expect.arrayContaining([expect.objectContaining({ value })]);
  for (const condensed of [null, 'mean', 'p95', 'last'] as const) {
    const history = await historyFrom(prometheus.url)({ ...question, condensed }, range);
    expect(history).toMatchObject([
      { jobId: runningJobId, node: 'node-1', gpuUuid: 'GPU-node-1-0', points: of(91) },
      { jobId: runningJobId, node: 'node-2', gpuUuid: 'GPU-node-2-0', points: of(17) },
    ]);
  }
  for (const each of namedMetrics.values()) {
    if (each.prometheus === null) continue;
    const history = await historyFrom(prometheus.url)(
      { ...question, metric: each, condensed: 'mean' },
      range,
    );
    expect(history, each.name).toBeInstanceOf(Array);
  }
  const own = await waitFor(
    'the coordinator was scraped',
    () => prometheus.query('muster_jobs{state="running"}'),
    {
      until: ({ length }) => length === 1,
    },
  );
  expect(own).toMatchObject([{ metric: { muster_role: 'coordinator' }, value: 1 }]);
  const targets = await waitFor('the silent node was tried', () => prometheus.targets(), {
    until: (each) => each['node-3'] !== 'unknown',
  });
  expect(targets['node-3']).toMatch(/^down: .*503/);
  expect(await configErrors(prometheus.configPath)).toBe('');
});
