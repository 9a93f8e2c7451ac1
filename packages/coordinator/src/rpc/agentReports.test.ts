import { emptyInventory } from '@muster/common/hardware';
import type { TaskReport } from '@muster/common/views';
import { taskReportToWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { asked } from '@muster/common/wire/wireFixture';
import { expect, test } from 'vitest';
import { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { anExit, aReport, jobIdOf, nodeNameOf, someMs } from '../modelFixture.ts';
import { inventory } from './agentFixture.ts';
import { inventoryReported, reportsFromWire } from './agentReports.ts';

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

test('an end is placed by the CLOCK_BOOTTIME of its node, however late its report and whatever its wall clock', () => {
  const taskStatus = new TaskStatusCache();
  const node = nodeNameOf('node-1');
  taskStatus.noteClock(node, 'boot', { sentBoottimeMs: 100_000, sentWallMs: someMs }, someMs);
  // The wall clock of the node was set by four hours since, and this report has waited for a minute.
  const sent = { sentBoottimeMs: 200_000, sentWallMs: someMs + 14_500_000 };
  taskStatus.noteClock(node, 'boot', sent, someMs + 160_000);
  const report = (moments: Partial<TaskReport>) => {
    const exit = anExit({ finishedAtMs: someMs + 90_000 });
    const wire = taskReportToWire(
      aReport(
        { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 },
        { state: 'ended', exit, runningForMs: 70_000, ...moments },
      ),
    );
    const { heartbeat } = asked(agentHubService.Session, { heartbeat: { seq: 1, observed: [wire] } });
    return reportsFromWire(taskStatus, node, heartbeat?.observed ?? [])[0];
  };
  expect(report({ startedBoottimeMs: 130_000, endedBoottimeMs: 190_000 })).toMatchObject({
    startedAtMs: someMs + 30_000,
    exit: { finishedAtMs: someMs + 90_000 },
  });
  expect(report({ startedBoottimeMs: 130_000, endedBoottimeMs: -5 })).toMatchObject({
    endedBoottimeMs: null,
  });
});
