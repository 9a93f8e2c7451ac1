import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { exitAlreadyGuarded, guardSocketPath, writeLine } from '../../guard/protocol.ts';
import { createProcessDriver } from './driver.ts';
import { GuardConnection } from './guardConnection.ts';
import { cgroupOf, idleScript, never, outputContains, processGone, useGuards } from './guardFixture.ts';

const aGuard = useGuards();

describe('one guard per runtime directory', () => {
  it('serves several drivers, also when all want to start it at once', async () => {
    const guard = aGuard();
    const drivers = [guard.driver(), guard.driver(), guard.driver(), guard.driver()];
    const task = await guard.script(idleScript);
    await Promise.all(drivers.map((driver) => driver.list()));
    await drivers[0]?.start(task);
    for (const driver of drivers) expect(await driver.recover(task)).toMatchObject({ kind: 'running' });
  });

  it('is waited for where somebody else starts it', async () => {
    const guard = aGuard();
    const { runtimeDir } = guard;
    const driver = createProcessDriver({
      environment: {},
      guardCommand: null,
      runtimeDir,
      log: silentLogger,
    });
    const listing = driver.list();
    await guard.driver().list();
    expect(await listing).toEqual([]);
    await driver.close();
  });

  it('makes a second one leave', async () => {
    const guard = aGuard();
    await guard.driver().list();
    const [file = '', ...args] = guard.guardArgv;
    const second = spawn(file, [...args, '--runtime-dir', guard.runtimeDir], { stdio: 'ignore' });
    expect(await once(second, 'exit')).toEqual([exitAlreadyGuarded, null]);
  });

  it('keeps running when its log cannot be written', async () => {
    const guard = aGuard();
    await mkdir(guard.runtimeDir, { mode: 0o700 });
    const full = openSync('/dev/full', 'w');
    const [file = '', ...args] = guard.guardArgv;
    const stdio: StdioOptions = ['ignore', 'ignore', full];
    const { pid } = spawn(file, [...args, '--runtime-dir', guard.runtimeDir], { stdio, detached: true });
    closeSync(full);
    // One that has said that it guards, and could not write that.
    await waitFor('the guard to listen', () => existsSync(guardSocketPath(guard.runtimeDir)));
    await guard.driver().list();
    expect(await guard.guardPid()).toBe(pid);
  });

  it('is private', async () => {
    const guard = aGuard();
    await mkdir(guard.runtimeDir, { mode: 0o755 });
    await guard.driver().list();
    const modes = ['', 'guard.sock', 'guard.log'].map((name) =>
      (statSync(join(guard.runtimeDir, name)).mode & 0o777).toString(8),
    );
    expect(modes).toEqual(['700', '600', '600']);
  });

  it('is refused where the path is too long for a socket', () => {
    const runtimeDir = `/tmp/${'long/'.repeat(20)}`;
    expect(() =>
      createProcessDriver({ environment: {}, guardCommand: ['true'], runtimeDir, log: silentLogger }),
    ).toThrow(/guard\.sock has a path of 115 bytes and Linux takes 107: choose a shorter runtime directory/);
  });
});

describe('the end of a guard', () => {
  it('comes by itself when nobody needs it, and leaves nothing behind', async () => {
    const guard = aGuard({ idleExitMs: 100 });
    const driver = guard.driver();
    const task = await guard.script(`trap 'exit 0' USR1; echo ready; ${idleScript}`);
    await driver.start(task);
    await outputContains(task, 'ready\n');
    const pid = await guard.livePid();
    const cgroup = cgroupOf(task);
    await driver.signal(task, 'SIGUSR1');
    await driver.wait(task, never());
    await driver.close();
    await processGone(pid);
    expect(existsSync(guardSocketPath(guard.runtimeDir))).toBe(false);
    expect(cgroup !== null && existsSync(dirname(cgroup))).toBe(false);
  });

  it('does not come while a task runs, nor through a terminal, and comes when asked without tasks', async () => {
    const guard = aGuard({ idleExitMs: 100 });
    const driver = guard.driver();
    const task = await guard.script(`trap 'exit 3' USR1; echo ready; ${idleScript}`);
    await driver.start(task);
    await outputContains(task, 'ready\n');
    await driver.close();
    const pid = await guard.livePid();
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.kill(pid, signal);
    await waitFor('the guard to refuse', () =>
      readFileSync(join(guard.runtimeDir, 'guard.log'), 'utf8').includes('asked to stop while tasks run'),
    );
    const again = guard.driver();
    await again.signal(task, 'SIGUSR1');
    expect(await again.wait(task, never())).toMatchObject({ exitCode: 3, statusLost: false });
    expect(await guard.guardPid()).toBe(pid);
    process.kill(pid, 'SIGTERM');
    await processGone(pid);
  });

  it('comes when the runtime directory has vanished and no task runs', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    await driver.list();
    const pid = await guard.livePid();
    await rm(guard.runtimeDir, { recursive: true, maxRetries: 10, retryDelay: 100 });
    await processGone(pid);
    expect(existsSync(guard.runtimeDir)).toBe(false);
  });
});

describe('a guard that cannot be had', () => {
  it('names the guard when that is what cannot be started', async () => {
    const guard = aGuard();
    const runtimeDir = guard.runtimeDir;
    const log = silentLogger;
    const absent = createProcessDriver({
      environment: {},
      guardCommand: ['/no/such/guard'],
      runtimeDir,
      log,
    });
    await expect(absent.list()).rejects.toMatchObject({
      name: 'GuardUnavailable',
      message: expect.stringMatching(/could not be started \(\/no\/such\/guard\): .*ENOENT/),
    });
    const failing = createProcessDriver({
      environment: {},
      guardCommand: ['/bin/sh', '-c', 'exit 9'],
      runtimeDir,
      log,
    });
    await expect(failing.list()).rejects.toMatchObject({
      name: 'GuardUnavailable',
      message: expect.stringMatching(/it ended with status 9; its log is .*guard\.log/),
    });
  });

  it('is not waited for without end when it accepts and then says nothing', async () => {
    const guard = aGuard();
    await mkdir(guard.runtimeDir);
    const path = guardSocketPath(guard.runtimeDir);
    const mute = createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => mute.listen(path, resolve));
    try {
      await expect(GuardConnection.open(path, 100)).rejects.toMatchObject({
        name: 'ConnectionLost',
        cause: new Error('no greeting within 100 ms'),
      });
    } finally {
      await new Promise((resolve) => mute.close(resolve));
    }
  });

  it('names the version of a guard that uses another protocol', async () => {
    const guard = aGuard();
    await mkdir(guard.runtimeDir);
    const other = createServer((socket) => {
      writeLine(socket, { guard: 'muster', protocol: 99, pid: 1 });
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => other.listen(guardSocketPath(guard.runtimeDir), resolve));
    try {
      await expect(guard.driver().list()).rejects.toMatchObject({
        name: 'GuardMismatch',
        message: expect.stringMatching(/uses protocol 99 and this agent 2/),
      });
    } finally {
      await new Promise((resolve) => other.close(resolve));
    }
  });
});
