import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { parseAddress } from '@muster/common/address';
import { afterEach, expect, test } from 'vitest';
import { joinByCertificate, newKey, ownTls } from '../../../../test/support/nodeKeys.ts';
import { promtoolErrors } from '../../../../test/support/prometheus.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';

let coordinator: TestCoordinator;
afterEach(() => coordinator.close());

const readPage = async () => (await fetch(`${coordinator.httpUrl}/metrics`)).text();

/** Seconds since 1970 by kind and node. */
async function readEnds(): Promise<Readonly<Record<string, number>>> {
  const found = (await readPage()).matchAll(
    /^muster_certificate_expiry_timestamp_seconds\{kind="(.*)",node="(.*)"\} (\S+)$/gm,
  );
  return Object.fromEntries(Array.from(found, ([, kind, node, value]) => [`${kind}/${node}`, Number(value)]));
}

const endOf = (certificate: X509Certificate | undefined) => (certificate?.validToDate.getTime() ?? 0) / 1_000;

/** Of the certificate that it shows to whoever connects. */
async function endOfServer(): Promise<number> {
  const { host, port } = parseAddress(coordinator.address) ?? expect.fail();
  const socket = connect({ host, port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return endOf(certificate);
}

test('the page has the ends of the CA, of the server and of each node until it is removed', async () => {
  coordinator = await startTestCoordinator({ tls: ownTls });
  const { certificate } = await joinByCertificate(coordinator, 'node-1', newKey());

  const ends = await readEnds();
  expect(Object.keys(ends)).toEqual(['ca/', 'server/', 'node/node-1']);
  expect(ends['ca/']).toBe(endOf(new X509Certificate(coordinator.caCertificate ?? '')));
  // A certificate counts whole seconds.
  expect(Math.floor(ends['server/'] ?? 0)).toBe(await endOfServer());
  expect(Math.floor(ends['node/node-1'] ?? 0)).toBe(endOf(new X509Certificate(certificate)));
  // But for a name that is not ours to choose.
  const errors = 'checkpoint_size_mb metric names should not contain abbreviated units\n';
  expect(await promtoolErrors(await readPage())).toBe(errors);

  await coordinator.api.revokeCredential('node-1');
  expect(Object.keys(await readEnds())).toEqual(['ca/', 'server/']);
});

test('the page has what is kept on disk with its limits, and what is free, as the call returns it', async () => {
  coordinator = await startTestCoordinator({ reserveBytes: 4_096, logLimits: { budgetBytes: 1_000_000 } });
  const page = await readPage();
  const values = new Map(
    Array.from(page.matchAll(/^(muster_disk_\w+\{.*\}) (\S+)$/gm), ([, series = '', value]) => [
      series,
      Number(value),
    ]),
  );
  expect(values.get('muster_disk_used_bytes{part="logs"}')).toBe(0);
  expect(values.get('muster_disk_limit_bytes{part="logs"}')).toBe(1_000_000);
  expect(values.has('muster_disk_limit_bytes{part="store"}')).toBe(false);
  const { certificates, parts, fileSystems } = await coordinator.api.getUpkeep();
  expect(certificates).toEqual([]);
  expect(parts.map(({ part }) => part)).toEqual(['store', 'events', 'logs', 'rows', 'backups', 'reserve']);
  expect(parts.find(({ part }) => part === 'logs')).toEqual({
    part: 'logs',
    usedBytes: 0,
    limitBytes: 1_000_000,
  });
  const { path, sizeBytes } = fileSystems[0] ?? expect.fail('there is none');
  expect(fileSystems).toMatchObject([{ reserveBytes: 4_096 }]);
  expect(values.get(`muster_disk_reserve_bytes{path="${path}"}`)).toBe(4_096);
  expect(values.get(`muster_disk_size_bytes{path="${path}"}`)).toBe(sizeBytes);
  expect(values.get(`muster_disk_avail_bytes{path="${path}"}`)).toBeGreaterThan(0);
});

test('the call returns the ends of certificates', async () => {
  coordinator = await startTestCoordinator({ tls: ownTls });
  await joinByCertificate(coordinator, 'node-1', newKey());
  const { certificates } = await coordinator.api.getUpkeep();
  expect(certificates.map(({ kind, node }) => [kind, node])).toEqual([
    ['ca', null],
    ['server', null],
    ['node', 'node-1'],
  ]);
  expect(certificates[0]?.expiresAtMs).toBe(
    1_000 * endOf(new X509Certificate(coordinator.caCertificate ?? '')),
  );
});

test('without TLS there is no certificate that could expire', async () => {
  coordinator = await startTestCoordinator();
  expect(await readEnds()).toEqual({});
});
