/** The same gangs on network namespaces, which are quicker to have. */
import { beforeAll, test } from 'vitest';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import { startNamespaceCluster } from '../../support/hosts/namespaceHosts.ts';
import { playScenario } from './playScenario.ts';
import { scenarios } from './scenarios.ts';

let cluster: GangCluster;
beforeAll(async () => {
  cluster = await startNamespaceCluster({ hosts: 4, gpus: 2 });
});

for (const scenario of scenarios) {
  test(scenario.name, async ({ annotate }) => {
    const { goneAfterMs, endedAfterMs } = await playScenario(cluster, scenario);
    const gone = goneAfterMs === null ? '' : `last sign of life after ${goneAfterMs} ms, `;
    await annotate(`${scenario.name}: ${gone}ended after ${endedAfterMs} ms`, 'time');
  });
}
