/** What has to be looked after before it runs out, for the Prometheus page. */
import type { Registry } from 'prom-client';
import type { CertificateEnd } from '../upkeep/certificates.ts';
import { addGauge } from './register.ts';

export interface UpkeepMetricParts {
  readonly certificates: () => readonly CertificateEnd[];
}

/** Of nodes, the first by name. */
const certificatesMax = 1_000;

export function addUpkeepMetrics(registry: Registry, { certificates }: UpkeepMetricParts): void {
  addGauge(registry, {
    name: 'muster_certificate_expiry_timestamp_seconds',
    help: 'When certificates expire, in seconds since 1970: of the CA and the server, and the newest of each node.',
    labelNames: ['kind', 'node'],
    read: () =>
      certificates()
        .slice(0, certificatesMax)
        .map(({ kind, node, expiresAtMs }) => [{ kind, node: node ?? '' }, expiresAtMs / 1_000]),
  });
}
