import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { MetricsView } from '@muster/common/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { configErrors, type Prometheus, promtoolErrors, startPrometheus } from '../support/prometheus.ts';
import { freePort, waitFor } from '../support/services.ts';

/** Prometheus looks every second; how long agents take to their first reading is not what is tested. */
const patience = { intervalMs: 250 } as const;

let cluster: Cluster;
let httpUrl: string;
let prometheus: Prometheus;
beforeAll(async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const coordinatorFlags = ['--http', '127.0.0.1:0', '--prometheus-url', url, '--prices', 'node:node-1=3.6'];
  cluster = await startCluster({ nodes: 2, gpus: 3, coordinatorFlags });
  const connection = readFileSync(join(cluster.dataDir, 'connection.json'), 'utf8');
  httpUrl = `http://${(JSON.parse(connection) as { http: string }).http}`;
  prometheus = await startPrometheus(`${httpUrl}/sd`, join(cluster.workDir, 'prometheus'), port);
});
afterAll(() => prometheus?.stop());

const dashboards = fileURLToPath(new URL('../../deploy/grafana', import.meta.url));

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const seriesOf = (promQl: string, count: number) =>
  waitFor(promQl, () => prometheus.query(promQl), { ...patience, until: (found) => found.length === count });

async function page(path: string): Promise<string> {
  const answer = await fetch(`${httpUrl}${path}`);
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return text;
}

test('Prometheus finds the coordinator and both agents, and none is down', async () => {
  expect(await configErrors(prometheus.configPath)).toBe('');
  const [, , address = ''] = httpUrl.split('/');
  await waitFor('all targets are up', () => prometheus.targets(), {
    ...patience,
    until: (seen) => isDeepStrictEqual(seen, { [address]: 'up', 'node-1': 'up', 'node-2': 'up' }),
  });
  expect(await seriesOf('muster_nodes{state="online"}', 1)).toMatchObject([{ value: 2 }]);
});

test('a query per job answers with the GPUs that the job holds, on every node', async () => {
  const resources = { nodes: 2, gpus: 1 };
  const [ours, other] = [
    await cluster.submit({ name: 'ours', command: 'sleep 600', resources }),
    await cluster.submit({ name: 'other', command: 'sleep 600', resources }),
  ];
  const job = await cluster.until(ours, 'running');
  await cluster.until(other, 'running');
  const held = job.attempts[0]?.tasks.flatMap(({ node, gpuUuids }) =>
    gpuUuids.map((uuid) => `${node} ${uuid}`),
  );
  const found = await seriesOf(`DCGM_FI_DEV_GPU_UTIL{muster_job="${ours}"}`, 2);
  expect(found.map(({ metric }) => `${metric['instance']} ${metric['UUID']}`).sort()).toEqual(held?.sort());
  for (const { value } of found) expect(value).toBeGreaterThanOrEqual(0);
  expect(
    await seriesOf(`sum by (muster_job) (DCGM_FI_DEV_FB_USED{muster_job=~"${ours}|${other}"})`, 2),
  ).toHaveLength(2);
  const named = await seriesOf(
    `DCGM_FI_DEV_GPU_UTIL * on (muster_job) group_left (name) muster_job_info{name="ours"}`,
    2,
  );
  expect(named.map(({ metric }) => metric['name'])).toEqual(['ours', 'ours']);
  await seriesOf('muster_queue_wait_seconds_count == 2', 1);
});

/**
 * What promtool reports about names that others have given: dcgm-exporter's names and labels, and one of training programs,
 * which dashboards and alert rules look for. Everything else that it reports must be fixed in Muster.
 */
const notOurs = new RegExp(
  '^DCGM_FI_\\w+ (?:counter metrics should have "_total" suffix' +
    "|metric name should not include type 'counter'" +
    "|label names should be written in 'snake_case' not 'camelCase')$" +
    '|^checkpoint_size_mb metric names should not contain abbreviated units$' +
    '|^cost_usd counter metrics should have "_total" suffix$',
);

test('every page is as Prometheus would have it, with all there is to tell of a job', async () => {
  const save = `echo '{"step": 7}' > "$MUSTER_CHECKPOINT_DIR/step-7.json"`;
  const jobId = await cluster.submit({
    command: `echo 'iter 7: loss 2.5000, time 10.00ms, mfu 1.00%'; ${save}; exec sleep 600`,
  });
  for (const name of ['training_loss', 'muster_job_checkpoint_bytes'])
    await seriesOf(`${name}{muster_job="${jobId}"}`, 1);
  for (const path of ['/metrics', '/nodes/node-1/metrics', '/nodes/node-2/metrics']) {
    const errors = (await promtoolErrors(await page(path))).split('\n');
    expect(
      errors.filter((line) => line !== '' && !notOurs.test(line)),
      path,
    ).toEqual([]);
  }
});

/** What has no series before something has happened that this cluster does not do: a condition, a recovery. */
const mayBeEmpty = [/muster_conditions/, /muster_agent_conditions/, /muster_recoveries_total/];

test('every query of the dashboards has an answer', async () => {
  const save = `echo '{"step": 7}' > "$MUSTER_CHECKPOINT_DIR/step-7.json"`;
  const row = `echo '{"step": 7, "loss": 2.5, "learning_rate": 0.001}'`;
  const command = `${save}; while :; do ${row}; sleep 1; done`;
  const phases = [{ name: 'only', steps: 1000 }];
  const jobId = await cluster.submit({ command, phases, resources: { gpus: 1 } });
  // GPU time is booked when an attempt ends.
  const ended = await cluster.submit({ command: 'sleep 1', resources: { gpus: 1 } });
  await cluster.until(ended, 'succeeded');
  const running = await cluster.until(jobId, 'running');
  const node = running.attempts[0]?.tasks[0]?.node ?? '';
  const asked = readdirSync(dashboards).flatMap((name) => {
    const { panels } = JSON.parse(readFileSync(join(dashboards, name), 'utf8')) as Dashboard;
    return panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }) => ({ of: `${name}: ${title}`, expr })),
    );
  });
  expect(asked.length).toBeGreaterThan(40);
  for (const { of, expr } of asked) {
    const promQl = expr
      .replaceAll('$node', node)
      .replaceAll('$job', jobId)
      .replaceAll('$__rate_interval', '30s');
    expect(promQl, of).not.toContain('$');
    const isFine = (found: readonly unknown[]) =>
      found.length > 0 || mayBeEmpty.some((each) => each.test(promQl));
    await waitFor(`${of}: ${promQl}`, () => prometheus.query(promQl), { ...patience, until: isFine });
  }
});

test('an agent that is away is down, its page says why, and it comes back', async () => {
  const agent = cluster.agent(1);
  await agent.kill();
  const down = { ...patience, until: (found: readonly unknown[]) => found.length === 1 };
  await waitFor('node-2 is down', () => prometheus.query('up{instance="node-2"} == 0'), down);
  const answer = await fetch(`${httpUrl}/nodes/node-2/metrics`);
  expect([answer.status, await answer.text()]).toEqual([
    503,
    expect.stringContaining('node-2 is not connected'),
  ]);
  await agent.start();
  await waitFor('node-2 is up', () => prometheus.query('up{instance="node-2"} == 1'), down);
});

test('readings survive a restart, and what is not in memory comes from Prometheus', async () => {
  const jobId = await cluster.submit({ name: 'past', command: 'sleep 600', resources: { gpus: 1 } });
  await cluster.until(jobId, 'running');
  // A step of the answer is ten seconds, and Prometheus looks every second.
  await seriesOf(`count_over_time(DCGM_FI_DEV_GPU_UTIL{muster_job="${jobId}"}[1h]) > 12`, 1);
  const asked = (until: (view: MetricsView) => boolean) =>
    waitFor(
      'the readings of the job',
      () => cluster.api.queryMetrics({ jobId, name: 'gpu_utilization', startTime: '-1h' }),
      { ...patience, until },
    );
  const sourcesOf = ({ origin }: MetricsView) => origin?.sources.map(({ source }) => source) ?? [];
  const before = await asked(({ series }) => series.length === 1);
  const [first] = before.series[0]?.points ?? [];
  await cluster.coordinator.kill('SIGTERM');
  await cluster.coordinator.start();
  const after = await asked(({ series }) => series.length === 1);
  // The wall clock moves a little against the monotonic one.
  const isFirst = ({ atMs }: { readonly atMs: number }) => Math.abs(atMs - (first?.atMs ?? 0)) < 1_000;
  expect(after.series[0]?.points.some(isFirst)).toBe(true);
  await cluster.coordinator.kill();
  rmSync(join(cluster.dataDir, 'telemetry.snapshot'));
  await cluster.coordinator.start();
  const older = await asked((view) => sourcesOf(view).includes('prometheus'));
  expect(older.origin?.notes).toEqual([]);
  expect(older.series.map(({ nodeRank, gpuUuid }) => [nodeRank, gpuUuid])).toEqual(
    before.series.map(({ nodeRank, gpuUuid }) => [nodeRank, gpuUuid]),
  );
  const both = await asked((view) => sourcesOf(view).length === 2);
  expect(sourcesOf(both)).toEqual(['prometheus', 'memory']);
  expect(both.series).toHaveLength(1);
});
