/**
 * What bad days do to gangs, on hosts with networks of their own, several gangs at a time. The seed of a run is printed
 * when it fails; MUSTER_TEST_SEED repeats its choices. A tenth of the trials, unless MUSTER_TEST_TRIALS=full asks for all.
 */
import { beforeAll, describe } from 'vitest';
import { seededChance } from '../support/chance.ts';
import type { GangCluster } from '../support/hosts/gangCluster.ts';
import { agentKillTests } from './gangs/agentKills.ts';
import { startClusterOfGangs } from './gangs/beatingGang.ts';
import { outageTests } from './gangs/outages.ts';
import { partitionTests } from './gangs/partitions.ts';
import { phaseTests } from './gangs/phaseTrials.ts';

let open: GangCluster;
const cluster = () => open;
beforeAll(async () => {
  open = await startClusterOfGangs();
});

// A choice more or less in one of them leaves those of the others as they were.
const { seed } = seededChance();
describe('partitions', () => {
  partitionTests(cluster, seededChance(seed));
});
describe('phases of gangs', () => {
  phaseTests(cluster, seededChance(seed));
});
describe('outages of the coordinator', () => {
  outageTests(cluster, seededChance(seed));
});
describe('kill -9 of agents', () => {
  agentKillTests(cluster, seededChance(seed));
});
