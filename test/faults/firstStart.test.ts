/** kill -9 in the first moments of a data directory, when its files come into being: the next start always works. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { Daemon } from '../support/daemon.ts';

/** As long as a whole start takes on a machine with nothing else to do, in steps that meet each part of it. */
const livesMs = Array.from({ length: 16 }, (_, index) => 20 * index);

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});

describe('killed again and again while it starts for the first time', () => {
  test('a coordinator comes up with one cluster, one token, and takes jobs', async () => {
    for (const stepMs of [0, 10]) {
      const data = join(cluster.workDir, `newborn-${stepMs}`);
      const newborn = new Daemon({
        title: `newborn-${stepMs}`,
        args: () => ['coordinator', '--data', data, '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0'],
        env: async () => ({ PATH: process.env.PATH, HOME: cluster.workDir }),
        logPath: join(cluster.workDir, `newborn-${stepMs}.log`),
      });
      for (const lifeMs of livesMs) await newborn.startBriefly(lifeMs + stepMs);
      await newborn.start();
      const submitted = await cluster.muster(['submit', '--data', data, '--', 'true']);
      expect(submitted.exitCode, submitted.stderr).toBe(0);
      expect(await newborn.stop(), newborn.log).toEqual({ exitCode: 0, signal: null });
    }
  });

  test('an agent joins once and works', async () => {
    const newborn = cluster.addAgent('newborn');
    for (const lifeMs of livesMs) await newborn.startBriefly(lifeMs);
    await newborn.start();
    await cluster.untilOnline();
    const job = await cluster.run({ command: 'true', resources: { nodes: 2 } });
    expect(job).toMatchObject({ state: 'succeeded' });
  });
});
