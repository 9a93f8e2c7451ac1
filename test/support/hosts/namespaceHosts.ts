/**
 * Hosts that are nothing but namespaces of this kernel: network, processes, mounts, host name. They share the machine's
 * files, and start in a tenth of a second. Each hangs with a veth pair on a bridge in a namespace of its own, the switch:
 * no packet can leave the room. Needs root.
 *
 * Nothing has a name outside of the room but control groups: when the tests are killed, the kernel ends every process
 * (parent death signals), and networks go with their last process. Groups that stay behind are found by the next run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MissingServiceError, tempDir, waitFor } from '../services.ts';
import { freeze, groupsNamed, makeGroup, processesIn, removeGroup, thaw, thawAll } from './controlGroups.ts';
import { firstProcess } from './firstProcess.ts';
import type { GangCluster, GangClusterOptions } from './gangCluster.ts';
import type { Machine, MachineRoom } from './machine.ts';
import { openGangCluster } from './openCluster.ts';
import { childrenOf, mustRun, signalProcess } from './programs.ts';

export interface NamespaceClusterOptions extends GangClusterOptions {
  /** Networks that every host is in, `eth0`, `eth1` …; default 1. */
  readonly networks?: number;
  /** Every host shows its interfaces as hardware with links of these speeds, Mbit/s by network; default: as virtual ones. */
  readonly linksMbps?: readonly number[];
}

export async function startNamespaceCluster(options: NamespaceClusterOptions = {}): Promise<GangCluster> {
  return openGangCluster(await NamespaceRoom.open(options), options);
}

/** Of setpriv: what it starts ends with the test, however that ends. */
const endsWithTest = ['--pdeathsig', 'SIGKILL'];

class NamespaceRoom implements MachineRoom {
  readonly kind = 'namespaces';
  readonly sharedDir: string;
  readonly networks: number;
  readonly linksMbps: readonly number[] | null;
  readonly group: string;
  private switch: ChildProcess | null = null;
  private readonly machines: NamespaceMachine[] = [];
  private readonly dir: string;

  static async open(options: NamespaceClusterOptions): Promise<NamespaceRoom> {
    if (process.getuid?.() !== 0)
      throw new MissingServiceError('namespaces as hosts need root: `sudo npm test`');
    await removeLeftovers();
    const room = new NamespaceRoom(options);
    await room.openSwitch();
    return room;
  }

  private constructor({ networks = 1, linksMbps }: NamespaceClusterOptions) {
    this.networks = networks;
    this.linksMbps = linksMbps ?? null;
    this.dir = tempDir('room').path;
    this.sharedDir = join(this.dir, 'shared');
    mkdirSync(this.sharedDir);
    this.group = makeGroup(`muster-test-hosts-${process.pid}-${randomUUID().slice(0, 8)}`);
  }

  async addMachine(name: string): Promise<Machine> {
    const machine = new NamespaceMachine(this, name, 10 + this.machines.length, join(this.dir, name));
    this.machines.push(machine);
    await machine.boot();
    return machine;
  }

  async remove(): Promise<void> {
    for (const machine of this.machines) await machine.cutPower();
    this.switch?.kill('SIGKILL');
    await waitFor('the control groups of the hosts are empty', () => removeGroup(this.group));
  }

  /** argv of a program on the network of the switch. */
  onSwitch(argv: readonly string[]): readonly string[] {
    return ['nsenter', `--net=/proc/${this.switch?.pid}/ns/net`, '--', ...argv];
  }

  private async openSwitch(): Promise<void> {
    this.switch = spawn('setpriv', [...endsWithTest, 'unshare', '--net', 'sleep', 'infinity'], {
      stdio: 'ignore',
    });
    const commands = Array.from({ length: this.networks }, (_, network) => [
      ['ip', 'link', 'add', `bridge${network}`, 'type', 'bridge'],
      ['ip', 'link', 'set', `bridge${network}`, 'up'],
    ]).flat();
    const [first = [], ...others] = commands;
    // Until `unshare` has run, this would be the network of the machine itself.
    await waitFor('the switch has a network of its own', () => isApart(this.switch?.pid));
    await mustRun(this.onSwitch(first));
    for (const command of others) await mustRun(this.onSwitch(command));
  }
}

class NamespaceMachine implements Machine {
  readonly name: string;
  readonly address: string;
  readonly homeDir: string;
  initPid: number | null = null;
  private readonly room: NamespaceRoom;
  private readonly lastOctet: number;
  private readonly group: string;

  constructor(room: NamespaceRoom, name: string, lastOctet: number, homeDir: string) {
    this.room = room;
    this.name = name;
    this.lastOctet = lastOctet;
    this.address = addressIn(0, lastOctet);
    this.homeDir = homeDir;
    this.group = join(room.group, name);
    mkdirSync(homeDir);
    mkdirSync(this.group);
    for (const [network, speed] of (room.linksMbps ?? []).entries()) this.writeLink(`eth${network}`, speed);
  }

  async boot(): Promise<void> {
    if (this.initPid !== null) throw new Error(`${this.name} is switched on already`);
    writeFileSync(join(this.homeDir, 'boot_id'), `${randomUUID()}\n`);
    const spaces = [
      '--net',
      '--mount',
      '--uts',
      '--ipc',
      '--pid',
      '--fork',
      '--kill-child=SIGKILL',
      '--mount-proc',
    ];
    const argv = [
      'setpriv',
      ...endsWithTest,
      'unshare',
      ...spaces,
      'sh',
      '-ec',
      this.bootScript(),
      'boot',
      ...firstProcess,
    ];
    const script = `echo $$ > ${this.group}/cgroup.procs && exec "$@"`;
    const outer = spawn('sh', ['-c', script, 'sh', ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [outer.stdout, outer.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    await waitFor(`${this.name} is up`, () => output, { until: (seen) => seen === 'up\n' });
    this.initPid = childrenOf(outer.pid ?? -1)[0] ?? null;
    for (let network = 0; network < this.room.networks; network += 1) await this.connect(network);
  }

  async cutPower(): Promise<void> {
    const pid = this.initPid;
    this.initPid = null;
    if (pid === null) return;
    // Closed connections would tell the others at once. The cables go first, with both of their ends.
    for (let network = 0; network < this.room.networks; network += 1) {
      await mustRun(this.room.onSwitch(['ip', 'link', 'delete', this.port(network)]));
    }
    // The kernel ends everything in the namespace with its first process; what is frozen in version 1 has to thaw for it.
    signalProcess(pid, 'SIGKILL');
    await waitFor(`${this.name} is off`, () => {
      thawAll(this.group);
      return processesIn(this.group).length === 0;
    });
  }

  pause(): Promise<void> {
    return freeze(this.group);
  }

  async unpause(): Promise<void> {
    thaw(this.group);
  }

  async unplug(network = 0): Promise<void> {
    await mustRun(this.room.onSwitch(['ip', 'link', 'set', this.port(network), 'down']));
  }

  async plug(network = 0): Promise<void> {
    await mustRun(this.room.onSwitch(['ip', 'link', 'set', this.port(network), 'up']));
  }

  /** In the switch; names of interfaces have at most 15 characters. */
  private port(network: number): string {
    return `port${this.lastOctet}-${network}`;
  }

  /** What the kernel tells of an interface that is a device. */
  private writeLink(name: string, speedMbps: number): void {
    const folder = join(this.linksDir, name);
    mkdirSync(join(folder, 'device'), { recursive: true });
    writeFileSync(join(folder, 'operstate'), 'up\n');
    writeFileSync(join(folder, 'speed'), `${speedMbps}\n`);
  }

  private get linksDir(): string {
    return join(this.homeDir, 'links');
  }

  private async connect(network: number): Promise<void> {
    const { initPid } = this;
    const link = `eth${network}`;
    const bridge = `bridge${network}`;
    const pair = ['type', 'veth', 'peer', 'name', link, 'netns', String(initPid)];
    await mustRun(this.room.onSwitch(['ip', 'link', 'add', this.port(network), ...pair]));
    await mustRun(this.room.onSwitch(['ip', 'link', 'set', this.port(network), 'master', bridge, 'up']));
    const inHost = ['nsenter', `--net=/proc/${initPid}/ns/net`, '--'];
    const address = `${addressIn(network, this.lastOctet)}/24`;
    await mustRun([...inHost, 'ip', 'address', 'add', address, 'dev', link]);
    await mustRun([...inHost, 'ip', 'link', 'set', link, 'up']);
  }

  /** Runs as the first process, in namespaces that nobody else is in. */
  private bootScript(): string {
    const groups = join(this.homeDir, 'cgroup');
    return [
      `echo ${this.name} > /proc/sys/kernel/hostname`,
      'ip link set lo up',
      // sysfs shows the network interfaces of the namespace that mounted it; control groups lie below it.
      `mkdir -p ${groups} && mount --rbind /sys/fs/cgroup ${groups}`,
      'mount -t sysfs sysfs /sys',
      `mount --rbind ${groups} /sys/fs/cgroup && umount --lazy ${groups}`,
      ...(this.room.linksMbps === null ? [] : [`mount --bind ${this.linksDir} /sys/class/net`]),
      `mount --bind ${join(this.homeDir, 'boot_id')} /proc/sys/kernel/random/boot_id`,
      'exec "$@"',
    ].join('\n');
  }
}

function addressIn(network: number, lastOctet: number): string {
  return `10.77.${network}.${lastOctet}`;
}

function isApart(pid: number | undefined): boolean {
  return pid !== undefined && networkOf(pid) !== null && networkOf(pid) !== networkOf('self');
}

function networkOf(pid: number | 'self'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}

/** Groups of a run that was killed; whatever of it still lives in them ends now. */
async function removeLeftovers(): Promise<void> {
  for (const group of groupsNamed(/^muster-test-hosts-\d+-/)) {
    const owner = /^muster-test-hosts-(\d+)-/.exec(group.slice(group.lastIndexOf('/') + 1))?.[1];
    if (existsSync(`/proc/${owner}`)) continue;
    await waitFor(`${group} is removed`, () => {
      for (const pid of processesIn(group)) signalProcess(pid, 'SIGKILL');
      thawAll(group);
      return removeGroup(group);
    });
  }
}
