/** The order in which services change their release, and the way back, on a machine that only notes what is asked of it. */
import { expect, test } from 'vitest';
import { CliError } from '../errors.ts';
import type { MachineRole } from '../install/roles.ts';
import { type ServiceMachine, switchRelease } from './switchRelease.ts';

interface Options {
  readonly hasStoreCopy?: boolean;
  readonly hasTasks?: boolean;
  /** Daemons that never become healthy, as `coordinator new`. */
  readonly sick?: readonly string[];
}

function aMachine({ hasStoreCopy = false, hasTasks = false, sick = [] }: Options) {
  const done: string[] = [];
  const note = (what: string) => () => void done.push(what);
  const machine: ServiceMachine = {
    useRelease: (which) => void done.push(`use ${which}`),
    restart: (unit) => void done.push(`restart ${unit.replace(/muster-|\.service/g, '')}`),
    stop: (unit) => void done.push(`stop ${unit.replace(/muster-|\.service/g, '')}`),
    hasTasks: async () => hasTasks,
    async untilHealthy(role, which) {
      const isSick = sick.includes(`${role} ${which}`);
      done.push(`${isSick ? 'sick' : 'healthy'} ${role} ${which}`);
      return isSick ? 'it does not answer' : null;
    },
    newestLog: () => ['out of luck'],
    store: hasStoreCopy
      ? { isMade: false, copy: note('copy store'), putBack: async () => note('put store back')() }
      : null,
    wasCutOff: false,
    noteBegun: note('note it'),
    noteEnded: note('forget it'),
    print: async () => {},
  };
  return { machine, done };
}

const both: readonly MachineRole[] = ['coordinator', 'agent'];

test('the coordinator is restarted before the agent, and the guard while nobody starts tasks', async () => {
  const { machine, done } = aMachine({});
  expect(await switchRelease(both, machine)).toEqual({ isGuardNew: true });
  expect(done).toEqual([
    'note it',
    'use new',
    'restart coordinator',
    'healthy coordinator new',
    'stop agent',
    'restart guard',
    'restart agent',
    'healthy agent new',
    'forget it',
  ]);
});

test('a guard with tasks keeps its release, and a store that changes its form is copied while nobody writes it', async () => {
  const { machine, done } = aMachine({ hasTasks: true, hasStoreCopy: true });
  expect(await switchRelease(both, machine)).toEqual({ isGuardNew: false });
  expect(done.slice(0, 5)).toEqual([
    'note it',
    'stop coordinator',
    'copy store',
    'use new',
    'restart coordinator',
  ]);
  // Nothing that ends the command may leave the tasks without their agent.
  expect(done).not.toContain('restart guard');
  expect(done).not.toContain('stop agent');
});

test.each([
  ['coordinator new', both],
  ['agent new', both],
  ['agent new', ['agent'] as const],
])('where the %s of %j stays sick, the old release and its store run again', async (sick, roles) => {
  const hasStoreCopy = roles.includes('coordinator');
  const { machine, done } = aMachine({ sick: [sick], hasStoreCopy });
  const role = sick.split(' ')[0];
  await expect(switchRelease(roles, machine)).rejects.toMatchObject({
    message: `the ${role} is not healthy: it does not answer; the old release runs again`,
    hints: ['out of luck', `Its log: journalctl -u muster-${role}.service`],
  });
  const back = done.slice(done.indexOf(`sick ${sick}`) + 1);
  expect(back).toEqual([
    ...(hasStoreCopy ? ['stop coordinator', 'put store back'] : []),
    'use old',
    ...(hasStoreCopy ? ['restart coordinator', 'healthy coordinator old'] : []),
    ...(role === 'agent' ? ['stop agent', 'restart guard', 'restart agent', 'healthy agent old'] : []),
    'forget it',
  ]);
});

test('a store that cannot be copied leaves the old release and its coordinator running', async () => {
  const { machine, done } = aMachine({});
  const copy = () => {
    throw new CliError('no space');
  };
  const full: ServiceMachine = { ...machine, store: { isMade: false, copy, putBack: async () => {} } };
  await expect(switchRelease(both, full)).rejects.toThrow('no space; the old release runs again');
  expect(done).toEqual([
    'note it',
    'stop coordinator',
    'use old',
    'restart coordinator',
    'healthy coordinator old',
    'forget it',
  ]);
});

test('both releases are named when the old one does not run again either', async () => {
  const { machine } = aMachine({ sick: ['coordinator new', 'coordinator old'] });
  await expect(switchRelease(both, machine)).rejects.toThrow(
    'the coordinator is not healthy: it does not answer, and going back failed: the coordinator is not healthy',
  );
});

test('an error that nobody foresaw goes back as well', async () => {
  const { machine, done } = aMachine({});
  let used = 0;
  const useRelease = (which: 'old' | 'new') => {
    done.push(`use ${which}`);
    used += 1;
    if (used === 1) throw new Error('ENOSPC: no space left on device');
  };
  await expect(switchRelease(both, { ...machine, useRelease })).rejects.toThrow(
    'no space left on device; the old release runs again',
  );
  expect(done).toEqual(['note it', 'use new', 'use old', 'forget it']);
});
