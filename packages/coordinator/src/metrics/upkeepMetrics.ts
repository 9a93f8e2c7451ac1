/** What has to be looked after before it runs out, for the Prometheus page. */
import type { DiskUse, Upkeep } from '@muster/common/upkeep';
import type { Registry } from 'prom-client';
import { addGauge } from './register.ts';

export interface UpkeepMetricParts {
  readonly upkeep: Upkeep;
}

/** Of nodes, the first by name. */
const certificatesMax = 1_000;
const unread: DiskUse = { parts: [], fileSystems: [] };

/** @returns looks at the disk, once for all of its metrics; to be called before each page */
export function addUpkeepMetrics(registry: Registry, { upkeep }: UpkeepMetricParts): () => Promise<void> {
  let disk = unread;
  addGauge(registry, {
    name: 'muster_certificate_expiry_timestamp_seconds',
    help: 'When certificates expire, in seconds since 1970: of the CA and the server, and the newest of each node.',
    labelNames: ['kind', 'node'],
    read: () =>
      upkeep
        .certificates()
        .slice(0, certificatesMax)
        .map(({ kind, node, expiresAtMs }) => [{ kind, node: node ?? '' }, expiresAtMs / 1_000]),
  });
  addGauge(registry, {
    name: 'muster_disk_used_bytes',
    help: 'What the data directory of the coordinator takes on disk, by part; events are a part of the store, and estimated.',
    labelNames: ['part'],
    read: () => disk.parts.map(({ part, usedBytes }) => [{ part }, usedBytes]),
  });
  addGauge(registry, {
    name: 'muster_disk_limit_bytes',
    help: 'What a part may take; the oldest is removed when it is more.',
    labelNames: ['part'],
    read: () =>
      disk.parts.flatMap(({ part, limitBytes }) => (limitBytes === null ? [] : [[{ part }, limitBytes]])),
  });
  addGauge(registry, {
    name: 'muster_disk_reserve_bytes',
    help: 'What is kept free on the file system of the data directory; below it no jobs are taken.',
    labelNames: ['path'],
    read: () =>
      disk.fileSystems.flatMap(({ path, reserveBytes }) =>
        reserveBytes === 0 ? [] : [[{ path }, reserveBytes]],
      ),
  });
  addGauge(registry, {
    name: 'muster_disk_size_bytes',
    help: 'Size of each file system of the data directory.',
    labelNames: ['path'],
    read: () => disk.fileSystems.map(({ path, sizeBytes }) => [{ path }, sizeBytes]),
  });
  addGauge(registry, {
    name: 'muster_disk_avail_bytes',
    help: 'Space that users other than root can still have on each file system of the data directory.',
    labelNames: ['path'],
    read: () => disk.fileSystems.map(({ path, availableBytes }) => [{ path }, availableBytes]),
  });
  return async () => {
    // Of a disk that cannot be read there are no values, but the rest of the page is there.
    disk = await upkeep.diskUse().catch(() => unread);
  };
}
