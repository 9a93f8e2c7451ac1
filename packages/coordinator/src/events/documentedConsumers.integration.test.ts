/** The consumers of docs/events.md, run as they stand on a real NATS. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@muster/common/log';
import { afterEach, expect, test } from 'vitest';
import { clusterId, EventLog, messagesUpToDate } from '../../../../test/support/natsRelay.ts';
import { startNats, tempDir, waitFor } from '../../../../test/support/services.ts';
import { openSqliteStore } from '../store/sqlite/sqliteStore.ts';
import { startNatsRelay } from './natsRelay.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

const named = (seq: number) => ({ name: `train-${seq}` });

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The only block of that language on the page. */
function documented(language: string): string {
  const page = readFileSync(join(root, 'docs/events.md'), 'utf8');
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))];
  expect(blocks).toHaveLength(1);
  return blocks[0]?.[1] ?? '';
}

/** @returns what it has printed so far, line by line */
function run(command: string, args: readonly string[]): () => readonly string[] {
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  let problem = '';
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (problem += chunk.toString()));
  closers.push(async () => {
    if (child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  });
  return () => {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${problem}`);
    return printed.split('\n').slice(0, -1);
  };
}

test('the consumers of the page receive every event of jobs, in order, old and new ones', async () => {
  const server = await startNats({ storeDir: tempDir('nats').path });
  closers.push(() => server.stop());
  const store = openSqliteStore(tempDir('relay').path, () => clusterId);
  closers.push(() => store.close());
  const log = new EventLog(store);
  const parts = { clusterId, store, committed: log.committed, credentials: null, log: silentLogger };
  const relay = startNatsRelay(server.url, { ...parts, settings: { ca: null, replicas: 1 } });
  closers.push(() => relay.close());
  await log.append(60, named);
  await messagesUpToDate(server, log);

  const folder = tempDir('consumers').path;
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'consumer.mjs'), documented('js'));
  writeFileSync(join(folder, 'consumer.py'), documented('python'));
  const { hostname, port } = new URL(server.url);
  const consumers = [
    run(process.execPath, [join(folder, 'consumer.mjs'), server.url, clusterId]),
    run('python3', [join(folder, 'consumer.py'), hostname, port, clusterId]),
  ];
  const expected = () =>
    log.events
      .filter(({ kind }) => kind.startsWith('job.'))
      .map(({ seq, kind, subject, data }) => `${seq} muster.${kind} ${subject} ${String(data['name'])}`);
  const received = (count: number) =>
    waitFor('all events are received', () => consumers.map((lines) => lines()), {
      until: (seen) => seen.every((lines) => lines.length >= count),
    });
  await received(expected().length);
  await log.append(60, named);
  const all = expected();
  for (const lines of await received(all.length)) expect(lines).toEqual(all);
});
