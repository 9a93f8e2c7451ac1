import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeDriver } from '../drivers/fakeDriver.ts';
import { aLaunch } from '../drivers/launchFixture.ts';
import { parsePreflightKey, preflightLocation, programRunner } from './preflightRun.ts';

const task = { jobId: 'job_0123456789ab' as JobId, attempt: 3, nodeRank: 1 };
const key = 'job_0123456789ab.3.1.preflight';
const never = new AbortController().signal;

let directory: string;
let drivers: { readonly process: FakeDriver; readonly docker: FakeDriver };

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-preflight-'));
  drivers = { process: new FakeDriver('process'), docker: new FakeDriver('docker') };
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const run = (env: Record<string, string>, abort = never, image: string | null = null) => {
  const launch = aLaunch({
    key: 'job_0123456789ab.3.1',
    directory,
    image,
    command: ['python3'],
    env,
    lease: { deadlineBoottimeMs: 1, bootId: 'b', onExpiry: 'kill' },
  });
  return programRunner((name) => (name === null ? drivers.process : drivers.docker))(task, launch, abort);
};

test('a program runs under a name of its own, and nothing of it is left', async () => {
  expect(await run({ FAKE_OUTPUT: 'hello\n', FAKE_EXIT_CODE: '3' })).toEqual({
    exitCode: 3,
    output: 'hello\n',
  });
  expect(drivers.process.launches.map((launch) => launch.key)).toEqual([key]);
  expect(drivers.process.launches[0]?.lease).toBeNull();
  expect(await drivers.process.list()).toEqual([]);
  expect(existsSync(join(directory, 'preflight'))).toBe(false);
});

test('a job with an image measures in that image', async () => {
  await run({ FAKE_OUTPUT: 'x', FAKE_EXIT_CODE: '0' }, never, 'trainer:1');
  expect([drivers.process.launches.length, drivers.docker.launches.length]).toEqual([0, 1]);
});

test('what an earlier agent left under this name is ended first', async () => {
  drivers.process.addRunning(key);
  expect((await run({ FAKE_OUTPUT: 'mine', FAKE_EXIT_CODE: '0' })).output).toBe('mine');
});

test('given up, it is ended', async () => {
  const abort = new AbortController();
  const running = run({ FAKE_OUTPUT: 'x' }, abort.signal);
  await vi.waitFor(() => expect(drivers.process.isRunning(key)).toBe(true), { interval: 1 });
  abort.abort(new Error('not wanted'));
  await expect(running).rejects.toThrow('not wanted');
  expect(await drivers.process.list()).toEqual([]);
});

test('what cannot be started says why, and leaves nothing', async () => {
  await expect(run({ FAKE_START_ERROR: 'image_pull' })).rejects.toMatchObject({ causeKind: 'image_pull' });
  expect(existsSync(join(directory, 'preflight'))).toBe(false);
});

test('its key is no task key, and says whose it is', () => {
  expect(preflightLocation({ key: 'job_0123456789ab.3.1', directory: '/t' })).toEqual({
    key,
    directory: '/t/preflight',
  });
  expect(parsePreflightKey(key)).toEqual(task);
  expect(parsePreflightKey('job_0123456789ab.3.1')).toBeNull();
  expect(parsePreflightKey('nonsense.preflight')).toBeNull();
});
