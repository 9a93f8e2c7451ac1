/** Brings a machine, or a system image in a directory, to the states that steps name. Whatever is so already is left alone. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDirectories, syncDirectory, writeFileDurably } from '@muster/common/files';
import { CliError } from '../errors.ts';
import { copyRelease, isReleaseAt } from './releaseTree.ts';
import type { InstallStep } from './roles.ts';

export interface TargetMachine {
  /** What the step would change, as a sentence without its full stop; null: nothing. */
  difference(step: InstallStep): string | null;
  /** @throws {CliError} with what could not be done, and where the reason stands */
  apply(step: InstallStep): void;
  /** For a step that is only shown: later steps are judged as if it had been done. */
  suppose(step: InstallStep): void;
  /** Call it after the last step: systemd forgets and learns units only when it reads them again. */
  settle(): void;
}

/**
 * @param root `/`, or the directory of a system image, in which nothing is started
 */
export function openMachine(root: string): TargetMachine {
  const changed = new Set<string>();
  let isReloadDue = false;
  const place = (path: string) => join(root, path);
  const isImage = root !== '/';
  /** systemd runs this machine: units can be started. */
  const isBooted = !isImage && existsSync('/run/systemd/system');

  const reload = () => {
    if (isReloadDue && isBooted) run('systemctl', ['daemon-reload']);
    isReloadDue = false;
  };
  const note = (path: string) => {
    changed.add(path);
    if (path.startsWith('/etc/systemd/')) isReloadDue = true;
  };
  const ownerOf = (name: string) => (name === 'root' ? rootOwner : findUser(root, name));
  const ownedAs = (stat: Stats, { path, mode, owner }: EntryStep) =>
    stat.uid === ownerOf(owner)?.uid && (stat.mode & 0o7777) === mode
      ? null
      : `set mode ${octal(mode)} and owner ${owner} of ${path}`;
  const entryDifference = (step: EntryStep) => {
    const { path, mode, owner } = step;
    const stat = lstatSync(place(path), { throwIfNoEntry: false });
    const verb = step.kind === 'file' ? 'write' : 'make the directory';
    if (stat === undefined) return `${verb} ${path} (${octal(mode)}, ${owner})`;
    const isKind = step.kind === 'file' ? stat.isFile() : stat.isDirectory();
    if (!isKind) throw new CliError(`${path} is in the way: it is not a ${step.kind}`);
    if (step.kind === 'directory') return ownedAs(stat, step);
    const now = readFileSync(place(path), 'utf8');
    if (now === step.text) return ownedAs(stat, step);
    return `change ${path}${mode === 0o600 ? '' : linesBetween(now, step.text)}`;
  };
  const own = (path: string, mode: number, owner: string) => {
    const account = ownerOf(owner);
    if (account === null) throw new CliError(`there is no user ${owner} to give ${path} to`);
    chownSync(path, account.uid, account.gid);
    chmodSync(path, mode);
  };

  return {
    difference(step) {
      switch (step.kind) {
        case 'user':
          return findUser(root, step.name) === null ? `create the system user ${step.name}` : null;
        case 'directory':
        case 'file':
          return changed.has(step.path) ? null : entryDifference(step);
        case 'link':
          return changed.has(step.path) ? null : linkDifference(step, place(step.path));
        case 'release': {
          if (changed.has(step.path) || isReleaseAt(step.tree, place(step.path))) return null;
          const verb = existsSync(place(step.path)) ? 'replace the damaged' : 'copy the';
          return `${verb} release ${step.tree.version} (${step.tree.commit.slice(0, 8)}) to ${step.path}`;
        }
        case 'absent': {
          // A file that an earlier step writes, such as the join token, is removed again.
          const isThere = lstatSync(place(step.path), { throwIfNoEntry: false }) !== undefined;
          return isThere || changed.has(step.path) ? `remove ${step.path}` : null;
        }
        case 'enabled':
          return lstatSync(place(wantsPath(step.unit)), { throwIfNoEntry: false }) === undefined
            ? `enable ${step.unit}`
            : null;
        case 'running': {
          if (isImage) return null;
          if (!isActive(isBooted, step.unit))
            return isBooted && waitsForTasks(step.unit) ? null : `start ${step.unit}`;
          return step.restartFor.some((path) => changed.has(path)) ? `restart ${step.unit}` : null;
        }
        default:
          return isBooted && hasAnything(step.unit) ? `stop ${step.unit}` : null;
      }
    },

    settle: reload,

    suppose(step) {
      if ('path' in step) changed.add(step.path);
    },

    apply(step) {
      switch (step.kind) {
        case 'user': {
          const { name, home, description } = step;
          run('systemd-sysusers', [
            ...(isImage ? [`--root=${root}`] : []),
            '--inline',
            `u ${name} - "${description}" ${home}`,
          ]);
          return;
        }
        case 'directory':
          makeDirectories(place(step.path), 0o755);
          own(place(step.path), step.mode, step.owner);
          note(step.path);
          return;
        case 'file':
          makeDirectories(dirname(place(step.path)), 0o755);
          writeFileDurably(place(step.path), step.text, 0o600);
          own(place(step.path), step.mode, step.owner);
          note(step.path);
          return;
        case 'link':
          makeDirectories(dirname(place(step.path)), 0o755);
          pointLink(place(step.path), step.target);
          note(step.path);
          return;
        case 'release':
          copyRelease(step.tree, place(step.path));
          note(step.path);
          return;
        case 'absent':
          rmSync(place(step.path), { recursive: true, force: true });
          note(step.path);
          return;
        case 'enabled':
          reload();
          run('systemctl', [...(isImage ? [`--root=${root}`] : []), 'enable', '--quiet', step.unit]);
          return;
        case 'running': {
          reload();
          if (!isBooted) return;
          const verb = isActive(isBooted, step.unit) ? 'restart' : 'start';
          const { status } = spawnSync('systemctl', [verb, step.unit], { stdio: 'ignore' });
          if (status === 0) return;
          throw new CliError(`${step.unit} does not start`, {
            hints: [...newestLog(step.unit), `Its log: journalctl -u ${step.unit}`],
          });
        }
        case 'stopped':
          run('systemctl', ['stop', step.unit]);
          // Tasks outlive their guard, which does not end by itself while they run. Nothing is left to kill in other units.
          for (const args of [['kill', '--signal=KILL'], ['reset-failed']])
            spawnSync('systemctl', [...args, step.unit], { stdio: 'ignore' });
          isReloadDue = true;
          return;
      }
    },
  };
}

type EntryStep = Extract<InstallStep, { kind: 'file' | 'directory' }>;

function linkDifference(
  { path, target }: Extract<InstallStep, { kind: 'link' }>,
  place: string,
): string | null {
  const stat = lstatSync(place, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isSymbolicLink())
    throw new CliError(`${path} is in the way: it is not a link`, {
      hints: [`Move it: mv ${path} ${path}.old`],
    });
  const now = stat === undefined ? null : readlinkSync(place);
  return now === target ? null : `point ${path} to ${target}${now === null ? '' : `, instead of ${now}`}`;
}

/** At once: anyone who follows the link meanwhile finds the old target or the new one. */
export function pointLink(path: string, target: string): void {
  const fresh = `${path}.new`;
  rmSync(fresh, { force: true });
  symlinkSync(target, fresh);
  renameSync(fresh, path);
  syncDirectory(dirname(path));
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

const rootOwner: Account = { uid: 0, gid: 0 };

/** From /etc/passwd: a system user that was made here stands there. */
function findUser(root: string, name: string): Account | null {
  const path = join(root, '/etc/passwd');
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

function wantsPath(unit: string): string {
  return `/etc/systemd/system/multi-user.target.wants/${unit}`;
}

function isActive(isBooted: boolean, unit: string): boolean {
  return isBooted && spawnSync('systemctl', ['is-active', '--quiet', unit]).status === 0;
}

/** Whether the unit will start a process, runs one, or still has some: tasks remain in a unit that has ended. */
function hasAnything(unit: string): boolean {
  const [state = '', group = ''] = propertiesOf(unit, ['ActiveState', 'ControlGroup']);
  return !['', 'inactive', 'failed'].includes(state) || group !== '';
}

/** How systemd reports that a process could not be put into the group of its unit (EXIT_CGROUP of systemd.exec(5)). */
const groupRefused = '219';

/** It starts once the tasks in groups below its own have ended: their limits keep processes out of its own. */
function waitsForTasks(unit: string): boolean {
  const [state, status] = propertiesOf(unit, ['ActiveState', 'ExecMainStatus']);
  return state === 'activating' && status === groupRefused;
}

/** @returns in the order of their names; empty: systemd does not know it */
function propertiesOf(unit: string, names: readonly string[]): readonly string[] {
  const { stdout } = spawnSync('systemctl', ['show', `--property=${names.join(',')}`, unit], {
    encoding: 'utf8',
  });
  const values = new Map(
    (stdout ?? '').split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]),
  );
  return names.map((name) => values.get(name) ?? '');
}

/** @throws {CliError} with the last line that the program wrote */
function run(program: string, args: readonly string[]): void {
  const { status, error, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return;
  const missing = error !== undefined && 'code' in error && error.code === 'ENOENT';
  throw new CliError(
    missing
      ? `there is no ${program}: services need systemd`
      : `${[program, ...args].join(' ')} failed: ${(stderr ?? '').trim().split('\n').at(-1)}`,
    missing ? { hints: ['Without systemd: muster up'] } : {},
  );
}

/** The newest lines that the processes of a unit logged, without systemd's own, as far as they can be read. */
export function newestLog(unit: string): readonly string[] {
  const args = [`_SYSTEMD_UNIT=${unit}`, '--lines', '5', '--output', 'cat', '--no-pager', '--quiet'];
  const { stdout } = spawnSync('journalctl', args, { encoding: 'utf8' });
  return (stdout ?? '').split('\n').filter((line) => line !== '');
}

function octal(mode: number): string {
  return `0${mode.toString(8)}`;
}

/** What a file would lose and gain, a line each. */
function linesBetween(before: string, after: string): string {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  const lost = old.filter((line) => !fresh.includes(line)).map((line) => `\n    - ${line}`);
  const gained = fresh.filter((line) => !old.includes(line)).map((line) => `\n    + ${line}`);
  return [...lost, ...gained].join('');
}
