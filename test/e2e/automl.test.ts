/** An AutoML run with real processes, over kills of the command and of the coordinator. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { pythonWithSklearn, waitFor } from '../support/services.ts';

let cluster: Cluster;
let python: string;
beforeAll(async () => {
  python = await pythonWithSklearn();
  cluster = await startCluster({ gpus: 1 });
});

const rows = Array.from({ length: 150 }, (_, index) => {
  const kind = index % 3;
  const [a, b] = [0.618, 0.414].map((factor) => (((index + 1) * factor) % 1).toFixed(3));
  return `${kind}${a?.slice(1)},${3 - kind}${b?.slice(1)},${['setosa', 'versicolor', 'virginica'][kind]}`;
});

test('a run ends with a report, whatever is killed meanwhile, and each step runs once', async () => {
  const data = join(cluster.workDir, 'flowers.csv');
  writeFileSync(data, `width,length,species\n${rows.join('\n')}\n`);
  const args = ['automl', '--data', data, '--target', 'species', '--interpretable', '--trials', '3'];
  const command = [...args, '--python', python, '-o', 'json'];
  const first = cluster.startMuster(command);
  const jobs = async () => (await cluster.api.listJobs({ limit: 100 }).catch(() => ({ jobs: [] }))).jobs;
  await waitFor('a trial runs', async () => (await jobs()).some(({ name }) => /-trial-\d+$/.test(name)));
  first.signal('SIGKILL');
  await cluster.coordinator.kill();
  await cluster.coordinator.start();
  const { stdout } = await cluster.muster(command);
  const answer = JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  expect(answer).toMatchObject({
    task: 'classification',
    metric: 'log_loss',
    models: ['linear', 'tree'],
    tuning_results: { trials_completed: 3 },
    ensembleMembers: 1,
  });
  const report = `${data}.automl/report.html`;
  expect(readFileSync(report, 'utf8')).toContain('<svg ');
  expect(existsSync(`${data}.automl/trials/2/model.joblib`)).toBe(true);

  const before = (await jobs()).map(({ id }) => id);
  expect(before).toHaveLength(5);
  const again = await cluster.muster(command);
  expect(JSON.parse(again.stdout)).toEqual(answer);
  expect((await jobs()).map(({ id }) => id)).toEqual(before);
});

test('a target that is not there is named with the columns that are', async () => {
  const data = join(cluster.workDir, 'other.csv');
  writeFileSync(data, `width,length,species\n${rows.join('\n')}\n`);
  const command = ['automl', '--data', data, '--target', 'kind', '--python', python];
  const refused = await cluster.muster(command);
  expect(refused.stderr).toContain(
    `${data}: no column "kind" (--target); columns: "width", "length", "species"`,
  );
});
