/**
 * Hosts that are Docker containers: files, network, processes, mounts, host name and control groups of their own, on a
 * Docker network that leads nowhere else. From this machine they have, read-only: its programs, Node, the built program,
 * and its starter. Needs root, because agents are put in from outside with the rights that root has on a
 * real host (an engine holds back mounting and control groups).
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { musterProgram, repositoryDir } from '../command.ts';
import { MissingServiceError, tempDir, waitFor } from '../services.ts';
import { controlGroupsOf, isFreezer, thawAll } from './controlGroups.ts';
import { engine, engineText } from './engine.ts';
import { enterMounts, enterNetwork } from './enter.ts';
import { firstProcess } from './firstProcess.ts';
import type { GangCluster, GangClusterOptions } from './gangCluster.ts';
import { bindsOfPrograms, importHostImage } from './hostImage.ts';
import type { Machine, MachineRoom } from './machine.ts';
import { openGangCluster } from './openCluster.ts';
import { mustRun, readLinesOf, signalProcess } from './programs.ts';

/** The pid of the tests that made a container or network; by it the next run knows what nobody owns any longer. */
const ownerLabel = 'muster-test.hosts-of';
const homeDir = '/var/lib/muster';

export async function startContainerCluster(options: GangClusterOptions = {}): Promise<GangCluster> {
  return openGangCluster(await ContainerRoom.open(), options);
}

class ContainerRoom implements MachineRoom {
  readonly kind = 'containers';
  readonly sharedDir: string;
  readonly image: string;
  readonly network: string;
  private readonly subnet: string;
  private readonly machines: ContainerMachine[] = [];

  static async open(): Promise<ContainerRoom> {
    if (process.getuid?.() !== 0)
      throw new MissingServiceError('containers as hosts need root: `sudo npm test`');
    await removeLeftovers();
    const image = await importHostImage();
    const name = `muster-test-${randomUUID().slice(0, 8)}`;
    return new ContainerRoom(image, name, await makeNetwork(name));
  }

  private constructor(image: string, network: string, subnet: string) {
    this.image = image;
    this.network = network;
    this.subnet = subnet;
    this.sharedDir = join(tempDir('room').path, 'shared');
    mkdirSync(this.sharedDir);
  }

  async addMachine(name: string): Promise<Machine> {
    const address = `${this.subnet}.${10 + this.machines.length}`;
    const machine = new ContainerMachine(this, name, address);
    this.machines.push(machine);
    await machine.create();
    await machine.boot();
    return machine;
  }

  async remove(): Promise<void> {
    for (const machine of this.machines) await machine.remove();
    await engine('DELETE', `/networks/${this.network}`, { accept: [404] });
  }
}

class ContainerMachine implements Machine {
  readonly name: string;
  readonly address: string;
  readonly homeDir: string = homeDir;
  initPid: number | null = null;
  private readonly room: ContainerRoom;
  private readonly container: string;
  private isPaused = false;

  constructor(room: ContainerRoom, name: string, address: string) {
    this.room = room;
    this.name = name;
    this.address = address;
    this.container = `${room.network}-${name}`;
  }

  async create(): Promise<void> {
    const { image, network, sharedDir } = this.room;
    const readOnly = [process.execPath, join(repositoryDir, 'dist'), musterProgram];
    await engine('POST', `/containers/create?name=${this.container}`, {
      body: {
        Image: image,
        Hostname: this.name,
        Cmd: firstProcess,
        Env: ['PATH=/usr/bin:/bin'],
        Labels: { [ownerLabel]: String(process.pid) },
        HostConfig: {
          NetworkMode: network,
          CgroupParent: await topControlGroup(),
          Binds: [
            ...bindsOfPrograms(),
            ...readOnly.map((path) => `${path}:${path}:ro`),
            `${sharedDir}:${sharedDir}`,
          ],
          RestartPolicy: { Name: 'no' },
        },
        NetworkingConfig: { EndpointsConfig: { [network]: this.endpoint } },
      },
    });
  }

  async boot(): Promise<void> {
    if (this.initPid !== null) throw new Error(`${this.name} is switched on already`);
    await engine('POST', `/containers/${this.container}/start`);
    const pid = await pidOf(this.container);
    if (pid === null)
      throw new Error(`the container of ${this.name} ended at once: ${await endOf(this.container)}`);
    const inside = enterMounts(pid);
    // What boots is told from what was restarted by its boot id, and containers show that of the machine.
    const bootId = join(homeDir, 'boot_id');
    await mustRun([...inside, 'sh', '-ec', `mkdir -p ${homeDir}; echo ${randomUUID()} > ${bootId}`]);
    await mustRun([...inside, 'mount', '--bind', bootId, '/proc/sys/kernel/random/boot_id']);
    // Root of a real host may make control groups; the engine shows them read-only.
    for (const group of mountedGroups(pid)) {
      await mustRun([...inside, 'mount', '-o', 'remount,bind,rw', group]);
    }
    this.initPid = pid;
  }

  async cutPower(): Promise<void> {
    const pid = this.initPid;
    if (pid === null) return;
    // Closed connections would tell the others at once.
    await this.unplug();
    this.initPid = null;
    this.isPaused = false;
    const groups = controlGroupsOf(pid).filter(isFreezer);
    // Not by the engine, which kills nothing that is paused. In version 1 a frozen task holds up the end of its container.
    signalProcess(pid, 'SIGKILL');
    await waitFor(`${this.name} is off`, async () => {
      groups.forEach(thawAll);
      return (await pidOf(this.container)) === null;
    });
  }

  async pause(): Promise<void> {
    await engine('POST', `/containers/${this.container}/pause`);
    this.isPaused = true;
  }

  async unpause(): Promise<void> {
    if (this.isPaused) await engine('POST', `/containers/${this.container}/unpause`);
    this.isPaused = false;
  }

  /** The cable is this machine's end of the pair: disconnecting by the engine would take the interface itself away. */
  async unplug(): Promise<void> {
    await mustRun(['ip', 'link', 'set', await this.cable(), 'down']);
  }

  async plug(): Promise<void> {
    await mustRun(['ip', 'link', 'set', await this.cable(), 'up']);
  }

  private async cable(): Promise<string> {
    // `20: eth0@if21: <BROADCAST …`: the other end is number 21, in the network of this machine.
    const inside = await mustRun([...enterNetwork(this), 'ip', '-o', 'link', 'show', 'eth0']);
    const otherEnd = /@if(\d+):/.exec(inside)?.[1];
    const cable = new RegExp(`^${otherEnd}: ([^:@]+)[:@]`, 'm').exec(
      await mustRun(['ip', '-o', 'link']),
    )?.[1];
    if (cable === undefined) throw new Error(`${this.name} hangs on no cable of this machine`);
    return cable;
  }

  async remove(): Promise<void> {
    await this.cutPower();
    await engine('DELETE', `/containers/${this.container}?force=1&v=1`, { accept: [404] });
  }

  private get endpoint(): object {
    return { IPAMConfig: { IPv4Address: this.address } };
  }
}

/**
 * Beside all else that this machine runs, so that each host gets as much of the processors as a session of somebody else. By
 * default all containers share one group, and its agents, together, what one session gets: less than a lease needs on a busy machine.
 */
async function topControlGroup(): Promise<string> {
  const info = await engine<{ CgroupDriver: string }>('GET', '/info');
  return info?.CgroupDriver === 'systemd' ? '-.slice' : '/';
}

async function pidOf(container: string): Promise<number | null> {
  const seen = await engine<{ State: { Pid: number } }>('GET', `/containers/${container}/json`);
  return seen === null || seen.State.Pid === 0 ? null : seen.State.Pid;
}

/** @returns the engine's state of a container, and what its first process wrote */
async function endOf(container: string): Promise<string> {
  const seen = await engine<{ State: object }>('GET', `/containers/${container}/json`);
  const output = await engineText(`/containers/${container}/logs?stdout=1&stderr=1`);
  return `${JSON.stringify(seen?.State)} ${output}`;
}

/** Mount points of control groups, in the container. */
function mountedGroups(pid: number): readonly string[] {
  return readLinesOf(`/proc/${pid}/mounts`)
    .map((line) => line.split(' '))
    .filter(([, , type = '']) => type.startsWith('cgroup'))
    .map(([, path = '']) => path);
}

/** Fixed addresses need a subnet of our own choice. @returns the first three octets of one that was free */
async function makeNetwork(name: string): Promise<string> {
  for (let third = 0; third < 256; third += 1) {
    const subnet = `10.213.${third}`;
    const made = await engine<{ Id: string }>('POST', '/networks/create', {
      body: {
        Name: name,
        Driver: 'bridge',
        Internal: true,
        IPAM: { Config: [{ Subnet: `${subnet}.0/24`, Gateway: `${subnet}.1` }] },
        Labels: { [ownerLabel]: String(process.pid) },
      },
      // The subnet is somebody else's.
      accept: [403],
    });
    if (made !== null) return subnet;
  }
  throw new Error('no subnet of 10.213.0.0/16 is free for a Docker network');
}

interface Labelled {
  readonly Id: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/** Containers and networks of tests that were killed. */
async function removeLeftovers(): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [ownerLabel] }));
  const isOrphan = ({ Labels }: Labelled) => !existsSync(`/proc/${Labels[ownerLabel]}`);
  const containers = (await engine<Labelled[]>('GET', `/containers/json?all=1&filters=${filters}`)) ?? [];
  for (const { Id } of containers.filter(isOrphan)) {
    const pid = await pidOf(Id);
    const groups = pid === null ? [] : controlGroupsOf(pid).filter(isFreezer);
    const removed = engine('DELETE', `/containers/${Id}?force=1&v=1`, { accept: [404, 409] });
    groups.forEach(thawAll);
    await removed;
  }
  const networks = (await engine<Labelled[]>('GET', `/networks?filters=${filters}`)) ?? [];
  for (const { Id } of networks.filter(isOrphan))
    await engine('DELETE', `/networks/${Id}`, { accept: [404] });
}
