import type { Upkeep } from '@muster/common/upkeep';
import { Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import { addUpkeepMetrics } from './upkeepMetrics.ts';

test('a disk that cannot be read leaves the rest of the page', async () => {
  const registry = new Registry();
  const store = { part: 'store', usedBytes: 7, limitBytes: null } as const;
  const diskUse = vi
    .fn<Upkeep['diskUse']>()
    .mockResolvedValueOnce({ parts: [store], fileSystems: [] })
    .mockRejectedValueOnce(new Error('EIO: i/o error'));
  const certificates = () => [{ kind: 'ca', node: null, expiresAtMs: 1_000 }] as const;
  const readDisk = addUpkeepMetrics(registry, { upkeep: { certificates, diskUse } });
  const values = async () => {
    await readDisk();
    return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  const end = 'muster_certificate_expiry_timestamp_seconds{kind="ca",node=""} 1';
  expect(await values()).toEqual([end, 'muster_disk_used_bytes{part="store"} 7']);
  expect(await values()).toEqual([end]);
});
