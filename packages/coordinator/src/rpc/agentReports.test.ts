import { emptyInventory } from '@muster/common/hardware';
import { agentHubService } from '@muster/common/wire/service';
import { asked } from '@muster/common/wire/wireFixture';
import { expect, test } from 'vitest';
import { inventory } from './agentFixture.ts';
import { inventoryReported } from './agentReports.ts';

test('a GPU that a node reports twice is one GPU', () => {
  const { status } = asked(agentHubService.Session, {
    status: { inventory: { ...inventory, gpus: [...(inventory.gpus ?? []), ...(inventory.gpus ?? [])] } },
  });
  const { gpus } = inventoryReported(status?.inventory ?? null);
  expect(gpus.map(({ uuid }) => uuid)).toEqual(inventory.gpus?.map(({ uuid }) => uuid));
});

test('a node that reports no inventory has none', () => {
  expect(inventoryReported(null)).toEqual(emptyInventory);
});
