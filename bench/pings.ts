/**
 * How long a heartbeat waits while other work is asked of a coordinator. A process of its own asks for the cluster every 50 ms,
 * whether or not the question before was answered: what it waits for is the coordinator's one thread, as a heartbeat does.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { connectMuster } from '@muster/common/wire/client';

/** Where a coordinator is, and with what it is asked. */
export interface Target {
  readonly address: string;
  readonly token: string;
}

const pingEveryMs = 50;

/** @returns how long each answer took while `during` was at work, milliseconds */
export async function pings(
  { address, token }: Target,
  during: () => Promise<unknown>,
): Promise<readonly number[]> {
  const pinger = fork(fileURLToPath(import.meta.url));
  const answered = () => new Promise<unknown>((resolve) => pinger.once('message', resolve));
  pinger.send({ address, token });
  await answered();
  await during();
  const took = answered();
  pinger.send('stop');
  return (await took) as readonly number[];
}

async function pingUntilStopped(): Promise<void> {
  const heard = () => new Promise<unknown>((resolve) => process.once('message', resolve));
  const api = connectMuster((await heard()) as Target);
  await api.getCluster();
  const took: number[] = [];
  const asked: Promise<unknown>[] = [];
  const timer = setInterval(() => {
    const startedMs = performance.now();
    asked.push(api.getCluster().then(() => took.push(performance.now() - startedMs)));
  }, pingEveryMs);
  process.send?.('begun');
  await heard();
  clearInterval(timer);
  await Promise.all(asked);
  api.close();
  process.send?.(took);
  process.disconnect();
}

if (import.meta.main) await pingUntilStopped();
