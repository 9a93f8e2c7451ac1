/** In a file of its own: what one test has loaded, the next would find loaded. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { countingBytes } from '../coordinatorFixture.ts';
import { openServerTls } from './serverTls.ts';
// oxlint-disable-next-line no-unassigned-import -- loading all of the coordinator is what this is about
import '../main.ts';

/** The library that writes certificates comes with a polyfill, which shows. */
const isLoaded = () => 'getMetadata' in Reflect;

test('a coordinator on loopback does not load the library that writes certificates', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lazy-library-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const open = async (host: string) => {
    const tls = await openServerTls({
      dataDir,
      clusterId: 'c0ffee',
      host,
      advertise: [],
      random: countingBytes(),
      wallMs: Date.now,
      log: silentLogger,
    });
    tls?.close();
  };
  await open('127.0.0.1');
  expect(isLoaded()).toBe(false);
  await open('0.0.0.0');
  expect(isLoaded()).toBe(true);
});
