/**
 * Gangs on real hosts: containers with an agent each, on a network of their own. What programs do to themselves is played on
 * network namespaces (`namespaces.test.ts`), and here too with MUSTER_TEST_TRIALS=full.
 */
import { beforeAll, test } from 'vitest';
import { startContainerCluster } from '../../support/hosts/containerHosts.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import { triesAll } from '../../support/trials.ts';
import { playScenario } from './playScenario.ts';
import { scenarios } from './scenarios.ts';

let cluster: GangCluster;
beforeAll(async () => {
  cluster = await startContainerCluster({ hosts: 4, gpus: 2 });
});

for (const scenario of scenarios.filter(({ dependsOnHost = triesAll }) => dependsOnHost)) {
  test(scenario.name, async ({ annotate }) => {
    const { goneAfterMs, endedAfterMs } = await playScenario(cluster, scenario);
    const gone = goneAfterMs === null ? '' : `last sign of life after ${goneAfterMs} ms, `;
    await annotate(`${scenario.name}: ${gone}ended after ${endedAfterMs} ms`, 'time');
  });
}
