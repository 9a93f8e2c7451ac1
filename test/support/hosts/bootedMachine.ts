/**
 * A machine with systemd as its first process: namespaces of this kernel on an overlay of this machine's own file system, so that
 * it has the programs that are installed here. What it writes is in memory, outlives its reboots, and is gone at the end of the
 * test file. Its services are systemd's own and those that the test installs; it has no network but loopback.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { patienceMs } from '../patience.ts';
import { MissingServiceError, tempDir, waitFor } from '../services.ts';
import { controlGroupsOf, type Hierarchy, hierarchies } from './controlGroups.ts';
import { childrenOf, type ProgramResult, runProgram } from './programs.ts';

export interface BootedMachine {
  /** Runs a program on it as root, with an ordinary environment. */
  run(...argv: readonly string[]): Promise<ProgramResult>;
  /** The same; @returns what it wrote to stdout @throws {Error} with its output, unless it ends well */
  must(...argv: readonly string[]): Promise<string>;
  /** Asks systemd to shut down, and starts it again. The kernel is the same, and so is its boot id. */
  reboot(): Promise<void>;
  remove(): Promise<void>;
  /** Of its systemd, as this machine counts: names its namespaces. Another one after each reboot. */
  readonly pid: number;
}

/** Each has control groups of its own. */
let booted = 0;

/** What no machine of a test needs, and what would act on the kernel that it shares. */
const maskedUnits = [
  'systemd-udevd.service',
  'systemd-udev-trigger.service',
  'systemd-networkd.service',
  'systemd-resolved.service',
  'systemd-timesyncd.service',
  'systemd-logind.service',
  'systemd-binfmt.service',
  'systemd-modules-load.service',
  'systemd-sysctl.service',
  'proc-sys-fs-binfmt_misc.automount',
  'dev-hugepages.mount',
  'dev-mqueue.mount',
  'sys-kernel-debug.mount',
  'sys-kernel-tracing.mount',
  'sys-kernel-config.mount',
  'sys-fs-fuse-connections.mount',
  'getty.target',
  'ssh.service',
  'docker.service',
  'docker.socket',
  'containerd.service',
];

/**
 * @param name its host name
 * @param binds directories of this machine that it sees read-only, by where it sees them
 * @param kept units that it runs though most machines of tests do without them
 * @throws {MissingServiceError} where systemd is not installed
 */
export async function bootMachine(
  name: string,
  binds: Readonly<Record<string, string>>,
  kept: readonly string[] = [],
): Promise<BootedMachine> {
  if (!existsSync('/lib/systemd/systemd')) {
    throw new MissingServiceError('no systemd here (Debian package systemd; `npm test` as root installs it)');
  }
  const place = tempDir('machine').path;
  // The mounts live as long as this process, and so longer than the machine.
  const holder = spawn('unshare', ['--mount', 'sh', '-euc', prepareScript(name, place, binds, kept)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const trouble: string[] = [];
  holder.stderr.on('data', (data: Buffer) => trouble.push(data.toString()));
  let ready = '';
  holder.stdout.on('data', (data: Buffer) => (ready += data.toString()));
  await waitFor(
    'the file system of the machine',
    () => {
      if (holder.exitCode !== null) throw new Error(trouble.join(''));
      return ready.includes('ready');
    },
    {},
  );
  booted += 1;
  const groups = controlGroupsOf('self').map((group) =>
    makeChild(group, `muster-machine-${process.pid}-${booted}`),
  );
  const machine = new OverlayMachine(name, place, holder, groups);
  await machine.boot();
  return machine;
}

class OverlayMachine implements BootedMachine {
  private readonly name: string;
  private readonly place: string;
  private readonly holder: ChildProcess;
  private readonly groups: readonly string[];
  private shell: ChildProcess | null = null;
  private initPid = 0;

  constructor(name: string, place: string, holder: ChildProcess, groups: readonly string[]) {
    this.name = name;
    this.place = place;
    this.holder = holder;
    this.groups = groups;
  }

  get pid(): number {
    return this.initPid;
  }

  async boot(): Promise<void> {
    const namespaces = ['--pid', '--mount', '--net', '--ipc', '--uts', '--cgroup'];
    const enter = this.groups.map((group) => `echo $$ > '${group}/cgroup.procs'`);
    const script = [
      ...enter,
      `exec unshare ${namespaces.join(' ')} --fork --kill-child sh -euc "$0" sh`,
    ].join('\n');
    const holderPid = String(this.holder.pid);
    const shell = spawn(
      'nsenter',
      ['--target', holderPid, '--mount', 'sh', '-euc', script, bootScript(this.name, this.place)],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    this.shell = shell;
    let trouble = '';
    shell.stderr.on('data', (data: Buffer) => (trouble = (trouble + data.toString()).slice(-4_000)));
    await waitFor('systemd', () => {
      if (shell.exitCode !== null || shell.pid === undefined) throw new Error(`it ended: ${trouble}`);
      const [init] = childrenOf(shell.pid);
      this.initPid = init ?? 0;
      return init !== undefined && readFileSync(`/proc/${init}/comm`, 'utf8') === 'systemd\n';
    });
    await waitFor(
      'its services',
      async () => {
        const { stdout } = await this.run('systemctl', 'is-system-running');
        return /^(?:running|degraded)$/m.test(stdout) || stdout;
      },
      { until: (seen) => seen === true },
    );
  }

  run(...argv: readonly string[]): Promise<ProgramResult> {
    const inside = ['--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup', '--root'];
    const variables = ['HOME=/root', 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', 'LANG=C.UTF-8'];
    const enter = ['nsenter', '--target', String(this.initPid), ...inside, '--'];
    // Installing on several machines is many waits in one.
    return runProgram([...enter, 'env', '--chdir=/', '-i', ...variables, ...argv], 3 * patienceMs);
  }

  async must(...argv: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(...argv);
    if (exitCode === 0) return stdout;
    const log = await this.run('journalctl', '--no-pager', '--lines', '60', '--output', 'short-monotonic');
    throw new Error(`${argv.join(' ')}: ended with ${exitCode}: ${stderr || stdout}\n${log.stdout}`);
  }

  async reboot(): Promise<void> {
    const { shell } = this;
    await this.run('systemctl', 'reboot', '--no-block');
    await waitFor('the end of the machine', () => shell?.exitCode !== null || shell.signalCode !== null);
    await this.boot();
  }

  async remove(): Promise<void> {
    const { shell, holder, groups } = this;
    shell?.kill('SIGKILL');
    await waitFor('the end of the machine', () => shell?.exitCode !== null || shell.signalCode !== null);
    holder.kill('SIGKILL');
    for (const group of groups) await waitFor(`${group} is empty`, () => removeGroup(group));
  }
}

function makeChild(group: string, name: string): string {
  const child = join(group, name);
  mkdirSync(child, { recursive: true });
  // In version 1 a group of this kind takes no process before it has been given processors and memory.
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    if (existsSync(join(group, 'cpuset.cpu_exclusive')))
      writeFileSync(join(child, file), readFileSync(join(group, file)));
  }
  return child;
}

/** @returns whether it is gone, with those below it */
function removeGroup(group: string): boolean {
  if (!existsSync(group)) return true;
  for (const entry of readdirSync(group, { withFileTypes: true }))
    if (entry.isDirectory()) removeGroup(join(group, entry.name));
  rmdirSync(group);
  return true;
}

/** Mounts the file system and waits. */
function prepareScript(
  name: string,
  place: string,
  binds: Readonly<Record<string, string>>,
  kept: readonly string[],
): string {
  const root = `${place}/disk/root`;
  const mounts = Object.entries(binds).map(
    ([at, from]) =>
      `mkdir -p '${root}${at}'; mount --bind '${from}' '${root}${at}'; mount -o remount,bind,ro '${root}${at}'`,
  );
  const masked = maskedUnits.filter((unit) => !kept.includes(unit));
  const masks = masked.map((unit) => `ln -sf /dev/null '${root}/etc/systemd/system/${unit}'`);
  return [
    'mount --make-rprivate /',
    `mkdir -p '${place}/disk'; mount -t tmpfs tmpfs '${place}/disk'`,
    `cd '${place}/disk'; mkdir up work root`,
    `mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work root`,
    // What is enabled or configured on this machine is not meant for this one.
    `rm -rf root/etc/systemd/system/*.wants root/etc/systemd/system/muster* root/etc/muster root/var/lib/muster*`,
    `: > root/etc/machine-id; : > root/etc/fstab; echo '${name}' > root/etc/hostname`,
    ...masks,
    ...mounts,
    'echo ready',
    'exec sleep infinity',
  ].join('\n');
}

/** Runs as the first process of the machine, and becomes systemd. */
function bootScript(name: string, place: string): string {
  const root = `${place}/disk/root`;
  const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'kmsg'];
  return [
    `cd '${root}'`,
    `mount --rbind . .; cd '${root}'`,
    'mount -t proc proc proc',
    'mount -t sysfs -o ro sysfs sys',
    'for each in run tmp dev; do mount -t tmpfs -o mode=0755 tmpfs $each; done',
    'chmod 1777 tmp',
    `for each in ${devices.join(' ')}; do if [ -e /dev/$each ]; then : > dev/$each; mount --bind /dev/$each dev/$each; fi; done`,
    'mkdir dev/pts dev/shm; mount -t tmpfs tmpfs dev/shm',
    'mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts; ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd',
    ...controlGroupMounts(hierarchies()),
    `hostname '${name}'; ip link set lo up`,
    'mkdir -p old; pivot_root . old; umount -l /old',
    'exec env -i container=muster-test /lib/systemd/systemd --log-target=journal',
  ].join('\n');
}

/** As this machine mounts them: systemd chooses by that how it uses them. */
function controlGroupMounts(all: readonly Hierarchy[]): readonly string[] {
  const top = '/sys/fs/cgroup';
  const version2 = all.find(({ controllers }) => controllers === '');
  if (version2?.mountPoint === top) return [`mount -t cgroup2 cgroup2 .${top}`];
  const each = all.map(({ controllers, mountPoint }) => {
    const kind = controllers === '' ? 'cgroup2' : 'cgroup';
    const options = controllers.startsWith('name=') ? `none,${controllers}` : controllers;
    const flag = options === '' ? '' : `-o '${options}'`;
    return `mkdir -p '.${mountPoint}'; mount -t ${kind} ${flag} ${kind} '.${mountPoint}'`;
  });
  return [`mount -t tmpfs -o mode=0755 tmpfs .${top}`, ...each];
}
