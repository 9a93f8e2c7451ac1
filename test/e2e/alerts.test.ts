/** Alerts to a webhook with a certificate of its own CA, over a kill of the coordinator in the middle of a delivery. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';
import { testAuthority } from '../support/tlsServer.ts';

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly alert: string;
  readonly subject: string;
  readonly isAnswered: boolean;
}

/** What the webhook got, in order. While it is slow it answers nothing. */
const deliveries: Delivery[] = [];
let isSlow = true;

const receive: RequestListener = (request, response) => {
  void json(request).then((body) => {
    const { status, alert, subject } = body as Delivery;
    const isAnswered = !isSlow;
    deliveries.push({ id: String(request.headers['x-muster-delivery']), status, alert, subject, isAnswered });
    if (isAnswered) response.end();
  });
};

let receiver: Server;
let cluster: Cluster;
beforeAll(async () => {
  const authority = await testAuthority();
  const ca = join(tempDir('ca').path, 'ca.crt');
  writeFileSync(ca, authority.certificate);
  receiver = createServer(await authority.issue(), receive);
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  const sink = ['--alert-webhook', `https://127.0.0.1:${port}/`, '--alert-ca', ca, '--alert-private', 'on'];
  cluster = await startCluster({ coordinatorFlags: [...sink, '--builtin-alerts', 'job_failed'] });
});
afterAll(() => {
  receiver.closeAllConnections();
  receiver.close();
});

const answered = (status: string) => () =>
  deliveries.some((each) => each.isAnswered && each.status === status);

test('killed while a slow webhook has an alert, the coordinator delivers that firing and its end, once each', async () => {
  await cluster.api.createAlert({ name: 'runs', condition: "workload_state == 'running'" });
  const gate = join(cluster.workDir, 'gate');
  const jobId = await cluster.submit({ command: `while [ ! -e ${gate} ]; do sleep 0.05; done` });
  await waitFor('the webhook has the firing', () => deliveries.length > 0);
  await cluster.coordinator.kill();
  isSlow = false;
  await cluster.coordinator.start();
  await waitFor('the firing is delivered', answered('firing'));

  writeFileSync(gate, '');
  await cluster.untilEnded(jobId);
  await waitFor('the end is delivered', answered('resolved'));
  const events = (await cluster.events()).filter(({ kind }) => /^alert\.(?!created)/.test(kind));
  expect(events.map(({ kind }) => kind)).toEqual(['alert.firing', 'alert.resolved']);
  // Of the firing each try has the number of its event: the receiver recognises the second one.
  expect([...new Set(deliveries.map(({ id, status }) => `${status} ${id}`))]).toEqual([
    `firing ${events[0]?.id}`,
    `resolved ${events[1]?.id}`,
  ]);
  // An answer may have come too late for the coordinator that was killed.
  const taken = new Map(
    deliveries.filter(({ isAnswered }) => isAnswered).map((each) => [each.id, each] as const),
  );
  expect([...taken.values()]).toMatchObject([
    { status: 'firing', alert: 'runs', subject: jobId },
    { status: 'resolved', alert: 'runs', subject: jobId },
  ]);
});
