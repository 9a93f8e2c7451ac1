import { describe, expect, it } from 'vitest';
import type { Container } from './engineAnswers.ts';
import { exitOf, observationOf, statusLost } from './taskExit.ts';

function aContainer(container: Partial<Container> = {}): Container {
  return {
    id: 'c0ffee',
    labels: { 'muster.boot': 'boot-1' },
    phase: 'ended',
    isPaused: false,
    pid: null,
    exitCode: 0,
    oomKilled: false,
    hasInit: true,
    hasMemoryLimit: false,
    startedAtMs: 1_000,
    finishedAtMs: 2_000,
    deviceRequests: [],
    workdir: '/',
    env: [],
    ...container,
  };
}

describe('exitOf', () => {
  it('reports an exit code', () => {
    expect(exitOf(aContainer({ exitCode: 3 }), 'boot-1')).toEqual({
      exitCode: 3,
      signal: null,
      oomKilled: false,
      finishedAtMs: 2_000,
      statusLost: false,
    });
  });

  it.each([
    [129, 'SIGHUP'],
    [134, 'SIGABRT'],
    [137, 'SIGKILL'],
    [139, 'SIGSEGV'],
    [143, 'SIGTERM'],
  ])('takes exit code %i for %s', (exitCode, signal) => {
    expect(exitOf(aContainer({ exitCode }), 'boot-1')).toMatchObject({ exitCode: null, signal });
  });

  it.each([127, 128, 145, 146, 147, 200, 255])('leaves exit code %i alone', (exitCode) => {
    expect(exitOf(aContainer({ exitCode }), 'boot-1')).toMatchObject({ exitCode, signal: null });
  });

  it('blames the out-of-memory killer only for tasks that failed', () => {
    expect(exitOf(aContainer({ exitCode: 137, oomKilled: true }), 'boot-1').oomKilled).toBe(true);
    expect(exitOf(aContainer({ exitCode: 1, oomKilled: true }), 'boot-1').oomKilled).toBe(true);
    expect(exitOf(aContainer({ exitCode: 0, oomKilled: true }), 'boot-1').oomKilled).toBe(false);
  });

  it.each([255, 137])('does not believe exit code %i of a container that a reboot ended', (exitCode) => {
    expect(exitOf(aContainer({ exitCode }), 'boot-2')).toEqual(statusLost);
  });

  it('believes other exit codes from before a reboot', () => {
    expect(exitOf(aContainer({ exitCode: 1 }), 'boot-2')).toMatchObject({ exitCode: 1, statusLost: false });
  });
});

describe('observationOf', () => {
  it('says that a task whose container never ran is absent', () => {
    expect(observationOf(aContainer({ phase: 'created' }), 'boot-1', false)).toEqual({ kind: 'absent' });
    expect(observationOf(null, 'boot-1', false)).toEqual({ kind: 'absent' });
  });

  it('reports a running task', () => {
    const container = aContainer({ phase: 'running', pid: 4711, finishedAtMs: null });
    const running = { kind: 'running', pid: 4711, startedAtMs: 1_000 };
    expect(observationOf(container, 'boot-1', false)).toEqual({ ...running, frozen: false });
    expect(observationOf(container, 'boot-1', true)).toEqual({ ...running, frozen: true });
  });
});
