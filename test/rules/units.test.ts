/** The units in deploy/systemd, as systemd itself reads them. Nothing is started. */
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemdAnalyze, tempDir } from '../support/services.ts';

const root = join(import.meta.dirname, '../..');
const units = join(root, 'deploy/systemd');

/** A copy of the units whose programs are those of this tree, which `verify` looks for. */
function installed(): string {
  const { path } = tempDir('units');
  cpSync(units, path, { recursive: true });
  for (const name of readdirSync(path).filter((each) => each.endsWith('.service'))) {
    const text = readFileSync(join(path, name), 'utf8');
    writeFileSync(
      join(path, name),
      text.replaceAll('/usr/lib/muster/muster', join(root, 'packages/cli/bin/muster')),
    );
  }
  return path;
}

test('systemd finds nothing wrong with them', () => {
  const path = installed();
  const services = readdirSync(path).filter((name) => name.endsWith('.service'));
  expect(services).toHaveLength(4);
  const files = services.map((name) => join(path, name));
  const { status, stdout, stderr } = spawnSync(systemdAnalyze(), ['verify', ...files], { encoding: 'utf8' });
  expect([stdout, stderr, status]).toEqual(['', '', 0]);
});

/** Tenths of systemd's measure of what a service could do to its machine if it were taken over; 100 is everything. */
const exposureMax = [
  ['muster-coordinator.service', 15],
  ['muster-agent.service', 20],
  // Tasks inherit what it has. They are what a node is for, so this one is bounded by what it is, not by what it should be.
  ['muster-guard.service', 82],
  ['muster-tasks.service', 15],
] as const;

test.each(exposureMax)('%s is exposed to %i tenths at most', (name, tenths) => {
  const args = ['security', '--offline=yes', '--no-pager', `--threshold=${tenths}`, join(units, name)];
  const { status, stdout } = spawnSync(systemdAnalyze(), args, { encoding: 'utf8' });
  expect(status, stdout).toBe(0);
});

/** Every value that a unit gives a setting. */
function setting(name: string, key: string): readonly string[] {
  const lines = readFileSync(join(units, name), 'utf8').split('\n');
  return lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
}

test.each(exposureMax)('no number of ends stops %s for good', (name) => {
  expect(setting(name, 'StartLimitIntervalSec')).toEqual(['0']);
  expect(setting(name, 'Restart')).toEqual(['always']);
});

test.each(['muster-coordinator.service', 'muster-agent.service'])('%s is watched and bounded', (name) => {
  expect(setting(name, 'Type')).toEqual(['notify']);
  expect(setting(name, 'WatchdogSec')).toEqual(['60']);
  // Reading a large store is no hang: the watchdog begins with READY=1.
  expect(setting(name, 'TimeoutStartSec')).toHaveLength(1);
  expect(setting(name, 'MemoryMax')).toHaveLength(1);
  expect(setting(name, 'TasksMax')).toHaveLength(1);
  // What slows a daemon down costs leases; what ends it costs a restart.
  expect(setting(name, 'MemoryHigh')).toEqual([]);
});

test.each(['muster-guard.service', 'muster-tasks.service'])(
  '%s bounds neither memory nor threads of tasks',
  (name) => {
    expect(setting(name, 'TasksMax')).toEqual(['infinity']);
    expect(setting(name, 'MemoryMax')).toEqual([]);
    expect(setting(name, 'KillMode')).toEqual(['process']);
  },
);
