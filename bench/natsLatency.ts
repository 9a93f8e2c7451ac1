/**
 * How long after its commit an event reaches a subscriber of NATS: a real nats-server, the relay and a store on a disk, and one event after
 * the other. The subscriber is in the same process, so both ends have one clock.
 *
 *     node bench/natsLatency.ts [events]
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '@muster/common/log';
import { startNatsRelay } from '@muster/coordinator/events/natsRelay';
import { openSqliteStore } from '@muster/coordinator/store/sqlite/sqliteStore';
import { connect } from '@nats-io/transport-node';
import { clusterId, EventLog, messagesUpToDate } from '../test/support/natsRelay.ts';
import { startNats } from '../test/support/services.ts';
import { report, reportMachine, summary } from './support.ts';

const count = Number(process.argv[2] ?? 1_000);
/** Between two events, as on a cluster that is not idle. */
const pauseMs = 5;

const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'));
mkdirSync(join(directory, 'store'));
const server = await startNats({ storeDir: join(directory, 'nats') });
const store = openSqliteStore(join(directory, 'store'), () => clusterId);
const log = new EventLog(store);
const parts = { clusterId, store, committed: log.committed, credentials: null, log: silentLogger };
const relay = startNatsRelay(server.url, { ...parts, settings: { ca: null, replicas: 1 } });
const subscriber = await connect({ servers: server.url.replace('nats://', '') });
try {
  reportMachine();
  await log.append(1);
  await messagesUpToDate(server, log);
  const received = new Map<number, number>();
  void (async () => {
    for await (const message of subscriber.subscribe(`muster.${clusterId}.>`)) {
      const { sequence } = message.json<{ readonly sequence: string }>();
      received.set(Number(sequence), performance.now());
    }
  })();
  await subscriber.flush();
  const committed: number[] = [];
  for (let index = 0; index < count; index += 1) {
    await log.append(1);
    committed.push(performance.now());
    await delay(pauseMs);
  }
  await messagesUpToDate(server, log);
  await subscriber.flush();
  const times = committed.flatMap((atMs, index) => {
    const receivedMs = received.get(index + 2);
    return receivedMs === undefined ? [] : [Math.max(0, receivedMs - atMs)];
  });
  report('from the commit of an event to a subscriber of NATS', {
    events: count,
    received: times.length,
    ...summary(times),
    target: 'p50 < 5 ms, p99 < 25 ms',
  });
} finally {
  await subscriber.close();
  await relay.close();
  await store.close();
  await server.stop();
  rmSync(directory, { recursive: true });
}
