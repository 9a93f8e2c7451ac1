/**
 * An upgrade that is killed at any of its steps, on a machine that may also lose its power then, and the same command again, or the one
 * that goes back. The machine is a model of what matters: a link, a store with a form, and daemons that run what was linked.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { MachineRole } from '../install/roles.ts';
import { goBack, type ServiceMachine, switchRelease } from './switchRelease.ts';
import { isNoted, noteBegun, notedUpgrade, noteEnded, unfinishedUpgrade } from './unfinished.ts';

type Release = 'old' | 'new';
const both: readonly MachineRole[] = ['coordinator', 'agent'];

interface Store {
  readonly form: Release;
  /** Acknowledged by a coordinator of the old release, which no way back may lose. */
  readonly jobs: readonly string[];
}

interface Options {
  readonly formChanges: boolean;
  /** Daemons of the new release that do not become healthy. */
  readonly sick: readonly MachineRole[];
}

class ModelMachine {
  private readonly options: Options;
  private readonly releases: string;
  link: Release = 'old';
  readonly runs = new Map<MachineRole, Release>([
    ['coordinator', 'old'],
    ['agent', 'old'],
  ]);
  store: Store = { form: 'old', jobs: ['before'] };
  private copied: Store | null = null;
  /** Steps until the command is killed. */
  private left = Number.POSITIVE_INFINITY;
  isDiskFull = false;
  acknowledged: readonly string[] = ['before'];

  constructor(options: Options) {
    this.options = options;
    this.releases = mkdtempSync(join(tmpdir(), 'muster-unfinished-'));
    onTestFinished(() => rmSync(this.releases, { recursive: true }));
  }

  get unfinished() {
    return unfinishedUpgrade(this.releases, this.link);
  }

  /** @param killedAfter how many steps @returns whether it ended before that */
  async upgrade(killedAfter = Number.POSITIVE_INFINITY): Promise<boolean> {
    // The whole upgrade once more changes nothing.
    if (this.link === 'new' && this.unfinished === null) return true;
    this.left = killedAfter;
    await switchRelease(both, this.services()).catch(() => {});
    return this.left >= 0;
  }

  /** What `muster upgrade` does with the archive of the old release. */
  async takeBack(): Promise<void> {
    this.left = Number.POSITIVE_INFINITY;
    const toTakeBack = notedUpgrade(this.releases);
    if (toTakeBack === null) return;
    const isLinked = this.unfinished !== null;
    await goBack(both, this.services(), isLinked && toTakeBack.storeCopy !== null);
  }

  /** Everything that is installed starts as it is linked, and the coordinator takes a job. */
  boot(): void {
    for (const role of both) this.start(role);
    if (this.runs.get('coordinator') !== 'old') return;
    const job = `job ${this.store.jobs.length}`;
    this.store = { ...this.store, jobs: [...this.store.jobs, job] };
    this.acknowledged = [...this.acknowledged, job];
  }

  private start(role: MachineRole): void {
    this.runs.delete(role);
    if (role === 'coordinator') {
      if (this.link === 'old' && this.store.form === 'new') return;
      if (this.link === 'new' && this.options.formChanges) this.store = { ...this.store, form: 'new' };
    }
    if (!(this.link === 'new' && this.options.sick.includes(role))) this.runs.set(role, this.link);
  }

  private step(): void {
    this.left -= 1;
    if (this.left < 0) throw new Error('killed');
  }

  private services(): ServiceMachine {
    const { unfinished } = this;
    const stopped = () => {
      if (this.runs.has('coordinator')) throw new Error('the store is in use');
    };
    const roleOf = (unit: string): MachineRole => (unit.includes('coordinator') ? 'coordinator' : 'agent');
    const isMade = unfinished !== null && unfinished.storeCopy !== null;
    const store = {
      isMade,
      copy: () => {
        this.step();
        stopped();
        if (this.store.form === 'new') throw new Error('the old release cannot read it');
        this.copied = this.store;
      },
      putBack: async () => {
        this.step();
        stopped();
        if (this.isDiskFull) throw new Error('no space left on the disk');
        this.store = this.copied ?? this.store;
      },
    };
    const hasStore = unfinished === null ? this.options.formChanges : isMade;
    return {
      store: hasStore ? store : null,
      wasCutOff: isNoted(this.releases),
      noteBegun: () => {
        this.step();
        noteBegun(this.releases, { from: 'old', to: 'new', storeCopy: hasStore ? '/copy' : null });
      },
      noteEnded: () => {
        this.step();
        noteEnded(this.releases);
      },
      useRelease: (which) => {
        this.step();
        this.link = which;
      },
      restart: (unit) => {
        this.step();
        if (!unit.includes('guard')) this.start(roleOf(unit));
      },
      stop: (unit) => {
        this.step();
        this.runs.delete(roleOf(unit));
      },
      hasTasks: async () => false,
      untilHealthy: async (role, which) => {
        this.step();
        return this.runs.get(role) === which ? null : 'it does not answer';
      },
      newestLog: () => [],
      print: async () => {},
    };
  }
}

const formChanges = [false, true];
const healths: readonly (readonly MachineRole[])[] = [[], ['coordinator'], ['agent']];
const cases = formChanges.flatMap((changes) => healths.map((sick) => ({ formChanges: changes, sick })));

function expectWorking(machine: ModelMachine, release: Release, what: string): void {
  expect(machine.link, what).toBe(release);
  expect([...machine.runs.values()], what).toEqual([release, release]);
  expect(machine.store.jobs, what).toEqual(machine.acknowledged);
  expect(machine.unfinished, what).toBeNull();
}

test.each(cases)('killed at each step, the same command ends it: %j', async (options) => {
  for (const losesPower of [false, true]) {
    for (let steps = 0; ; steps += 1) {
      const machine = new ModelMachine(options);
      const isOver = await machine.upgrade(steps);
      if (losesPower) machine.boot();
      // A release that stays sick is left by the first command, or by the second.
      await machine.upgrade();
      expectWorking(machine, options.sick.length === 0 ? 'new' : 'old', `${steps} steps, ${losesPower}`);
      if (isOver) break;
    }
  }
});

test.each(cases)('killed at each step, it can be taken back as well: %j', async (options) => {
  for (const losesPower of [false, true]) {
    for (let steps = 0; ; steps += 1) {
      const machine = new ModelMachine(options);
      const isOver = await machine.upgrade(steps);
      if (isOver) break;
      if (losesPower) machine.boot();
      await machine.takeBack();
      expectWorking(machine, 'old', `${steps} steps, ${losesPower}`);
    }
  }
});

test('after a cut of the power the linked coordinator always reads the store', async () => {
  for (const options of cases) {
    for (let steps = 0; ; steps += 1) {
      const machine = new ModelMachine({ ...options, sick: options.sick.filter((role) => role === 'agent') });
      const isOver = await machine.upgrade(steps);
      machine.boot();
      expect(machine.runs.get('coordinator'), `${steps} steps`).toBe(machine.link);
      if (isOver) break;
    }
  }
});

test('a disk that is full while it goes back keeps the copy, and the way back is open once it has space', async () => {
  const machine = new ModelMachine({ formChanges: true, sick: ['agent'] });
  machine.isDiskFull = true;
  await machine.upgrade();
  expect([machine.link, machine.unfinished?.from]).toEqual(['new', 'old']);
  expect(machine.runs.get('coordinator')).toBe('new');
  machine.isDiskFull = false;
  await machine.takeBack();
  expectWorking(machine, 'old', 'with space');
});
