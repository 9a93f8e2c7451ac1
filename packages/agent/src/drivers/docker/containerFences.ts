/**
 * The two fences of a container: the agent's own hand on its control group, and the guard's, which holds without the
 * agent. Neither asks the engine, and a container is never paused through it: an engine that hangs must not keep a task
 * running.
 *
 * Which control groups a container has is kept in the task's directory, so that an agent can fence a container that the
 * one before it started, whether or not an engine answers.
 */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '@muster/common/files';
import type { Logger } from '@muster/common/log';
import { cgroupDirectory, parseCgroupHomes } from '../../fence/cgroupMounts.ts';
import { ControlGroup } from '../../fence/controlGroup.ts';
import { freezeOrKill, killUntilGone } from '../../fence/freeze.ts';
import { isExpired } from '../../fence/leaseFile.ts';
import { OnePerTask } from '../../fence/onePerTask.ts';
import { sendSignal } from '../../fence/processes.ts';
import { readKernelFileUnlessGone } from '../../host/kernelFiles.ts';
import { DriverError, LeaseExpired } from '../../taskFacts/errors.ts';
import type { Lease, TaskLocation, TaskName } from '../../taskFacts/execution.ts';
import type { Fence } from '../driver.ts';
import type { Container } from './engineAnswers.ts';

export interface ContainerFencesOptions {
  readonly fence: Fence;
  readonly bootId: string;
  readonly boottimeMs: () => number;
  readonly log: Logger;
}

/** Between two times that the guard is told of containers for which no lease is renewed. */
const watchIntervalMs = 10_000;

export class ContainerFences {
  private readonly options: ContainerFencesOptions;
  /** Tasks of which the guard only watches the output. */
  private readonly unleased = new Map<TaskName, TaskLocation>();
  private watching: NodeJS.Timeout | null = null;
  /** Answers of the guard that are waited for; none rejects. */
  private readonly sending = new Map<TaskName, Promise<void>>();
  private isGuardAway = false;
  private readonly groups = new Map<TaskName, readonly string[]>();
  private readonly leases = new Map<TaskName, Lease | null>();
  private readonly acting = new OnePerTask();

  constructor(options: ContainerFencesOptions) {
    this.options = options;
  }

  /** @throws {LeaseExpired} */
  requireLease(task: TaskLocation, lease: Lease | null): void {
    if (!this.hasRunOut(lease)) return;
    throw new LeaseExpired(`the lease of task ${task.key} had run out before its container was started`);
  }

  /**
   * Before the container is started: the guard waits for it to come into being.
   * @throws {DriverError} when containers cannot be fenced here
   */
  async arm(task: TaskLocation, lease: Lease | null, containerId: string): Promise<void> {
    const groups = readCandidateGroups(containerId);
    if (lease !== null && groups.length === 0) throw unfenceable(task.key);
    this.keep(task, groups);
    this.leases.set(task.key, lease);
    if (lease === null) this.watchOutput(task);
    else await this.options.fence.renew(task, lease, groups);
  }

  /**
   * Right after the start: the kernel names the control group, and the guard is given one that nobody could foresee. A
   * lease that has run out while the engine was starting the container is enforced at once.
   * @throws {DriverError} when the container cannot be fenced; the caller must kill it
   */
  async armStarted(task: TaskLocation, lease: Lease | null, container: Container): Promise<void> {
    const foreseen = this.known(task);
    const groups = this.learn(task, container);
    if (groups === null) return;
    if (lease === null) {
      this.watchOutput(task);
      return;
    }
    if (groups.length === 0) throw unfenceable(task.key);
    if (groups.some((group) => foreseen?.includes(group) !== true)) {
      await this.options.fence.renew(task, lease, groups);
    }
    if (!this.hasRunOut(lease)) return;
    if (lease.onExpiry === 'freeze') await this.freeze(task);
    else await this.kill(task);
  }

  /** @returns the control groups of a container that runs; null: it does not, or no longer */
  learn(task: TaskLocation, container: Container): readonly string[] | null {
    if (container.phase !== 'running' || container.pid === null) return null;
    const groups = readGroupsOfProcess(container.pid, container.id);
    if (groups !== null && groups.length > 0) this.keep(task, groups);
    return groups;
  }

  /** Whether it is known where the task's container is, or will be. */
  knows(task: TaskLocation): boolean {
    return this.known(task) !== null;
  }

  /** @throws {DriverError} when it is not known where the container is */
  async renew(task: TaskLocation, lease: Lease | null): Promise<void> {
    const groups = this.known(task);
    if (groups === null) throw unfenceable(task.key);
    this.leases.set(task.key, lease);
    if (lease === null) this.keepWatching(task);
    else await this.endWatch(task);
    await this.options.fence.renew(task, lease, groups);
  }

  /** Has the guard hold the output of a container without a lease to its limits. No start waits for that. */
  private watchOutput(task: TaskLocation): void {
    this.keepWatching(task);
    void this.sendToGuard(task);
  }

  /** The guard may be away now, and one that is started later knows of leases only. */
  private keepWatching(task: TaskLocation): void {
    this.unleased.set(task.key, task);
    this.watching ??= setInterval(() => {
      for (const each of this.unleased.values()) {
        const isThere = this.known(each)?.some((path) => existsSync(path)) === true;
        if (isThere && !this.sending.has(each.key)) void this.sendToGuard(each);
      }
    }, watchIntervalMs).unref();
  }

  private sendToGuard(task: TaskLocation): Promise<void> {
    const groups = this.known(task) ?? [];
    const sent = groups.length === 0 ? Promise.resolve() : this.options.fence.renew(task, null, groups);
    const sending = sent
      .then(() => {
        this.isGuardAway = false;
      })
      .catch((error: unknown) => {
        const fields = { task: task.key, error: String(error) };
        if (!this.isGuardAway) this.options.log.warn(fields, 'the output of a container is not limited yet');
        this.isGuardAway = true;
      })
      .finally(() => {
        if (this.sending.get(task.key) === sending) this.sending.delete(task.key);
      });
    this.sending.set(task.key, sending);
    return sending;
  }

  /** A lease comes last: what is still on its way to the guard says that there is none. */
  private async endWatch({ key }: TaskLocation): Promise<void> {
    this.unleased.delete(key);
    await this.sending.get(key);
  }

  close(): void {
    clearInterval(this.watching ?? undefined);
  }

  /** @throws {DriverError} when it is not known where the container is */
  freeze(task: TaskLocation): Promise<'frozen' | 'killed' | 'ended'> {
    return this.acting.run(task.key, async () => {
      const outcomes: ('frozen' | 'killed' | 'ended')[] = [];
      for (const group of this.present(task)) outcomes.push(await freezeOrKill(group));
      return outcomes.find((outcome) => outcome !== 'ended') ?? 'ended';
    });
  }

  thaw(task: TaskLocation): Promise<void> {
    return this.acting.run(task.key, async () => {
      for (const group of this.present(task)) group.thaw();
    });
  }

  /** To save what it has, before it is killed; not after its lease has run out. */
  async thawToSave(task: TaskLocation): Promise<void> {
    if (this.knows(task) && this.mayRun(task)) await this.thaw(task);
  }

  /** As far as this agent knows: of a container that an earlier one started, not before it has a lease to pass on. */
  mayRun(task: TaskLocation): boolean {
    const lease = this.leases.get(task.key);
    return lease !== undefined && !this.hasRunOut(lease);
  }

  /**
   * Frozen or not.
   * @returns false: the control group is not known, or not every process could be sent the signal; the engine has to
   */
  kill(task: TaskLocation): Promise<boolean> {
    return this.acting.run(task.key, async () => {
      if (!this.knows(task)) return false;
      let reachedAll = true;
      for (const group of this.present(task)) reachedAll = (await killUntilGone(group)) && reachedAll;
      return reachedAll;
    });
  }

  /** Groups that hold the processes of the container. Null if it is not known where the container is. */
  groupsOf(task: TaskLocation): readonly ControlGroup[] | null {
    return this.knows(task) ? this.present(task) : null;
  }

  /** Signals the first process of the container, as the engine does. One that has ended is not an error. */
  signalMain(task: TaskLocation, signal: string): void {
    for (const pid of this.processes(task) ?? []) if (isFirstOfNamespace(pid)) sendSignal(pid, signal);
  }

  /** null: it is not known where the container is. */
  processes(task: TaskLocation): readonly number[] | null {
    if (!this.knows(task)) return null;
    return [...new Set(this.present(task).flatMap((group) => group.pids()))];
  }

  /** false also where it cannot be seen. */
  isFrozen(task: TaskLocation): boolean {
    if (!this.knows(task)) return false;
    return this.present(task).some((group) => group.isFrozen() && !group.isEmpty());
  }

  /** Nothing of the task is left, or it never began. */
  async forget(task: TaskLocation): Promise<void> {
    await this.endWatch(task);
    await this.options.fence.forget(task);
    this.groups.delete(task.key);
    this.leases.delete(task.key);
    rmSync(groupsPath(task), { force: true });
  }

  private hasRunOut(lease: Lease | null): boolean {
    return lease !== null && isExpired(lease, this.options.bootId, this.options.boottimeMs());
  }

  private present(task: TaskLocation): ControlGroup[] {
    const known = this.known(task);
    if (known === null) {
      throw new DriverError('unknown', `the control group of task ${task.key} is not known to this agent`);
    }
    return known.filter((path) => existsSync(path)).map((path) => new ControlGroup(path));
  }

  private known(task: TaskLocation): readonly string[] | null {
    const groups = this.groups.get(task.key) ?? readContainerGroups(task);
    if (groups !== null) this.groups.set(task.key, groups);
    return groups;
  }

  private keep(task: TaskLocation, groups: readonly string[]): void {
    const known = this.known(task);
    if (known !== null && JSON.stringify(known) === JSON.stringify(groups)) return;
    this.groups.set(task.key, groups);
    try {
      writeFileAtomically(groupsPath(task), `${JSON.stringify({ version: 1, groups })}\n`, 0o600);
    } catch (error) {
      // A full disk: this agent knows them anyway, and the next asks the engine.
      this.options.log.warn({ task: task.key, error: String(error) }, 'cannot note where a container is');
    }
  }
}

/** True for process 1 of a pid namespace. The kernel lists its pids from our namespace inwards (proc(5)). */
function isFirstOfNamespace(pid: number): boolean {
  const status = readKernelFileUnlessGone(`/proc/${pid}/status`);
  const pids =
    /^NSpid:(.*)$/m
      .exec(status ?? '')?.[1]
      ?.trim()
      .split(/\s+/) ?? [];
  return pids.length > 1 && pids.at(-1) === '1';
}

function groupsPath(task: TaskLocation): string {
  return join(task.directory, 'container.json');
}

/**
 * The control groups in which the task's container runs or ran, as absolute paths, until the task is removed.
 * @returns null: nothing was noted, or nothing that can be read; the task may be no container
 */
export function readContainerGroups(task: TaskLocation): readonly string[] | null {
  try {
    const { groups } = JSON.parse(readFileSync(groupsPath(task), 'utf8')) as { groups?: unknown };
    return Array.isArray(groups) && groups.every((group) => typeof group === 'string') ? groups : null;
  } catch {
    return null;
  }
}

function unfenceable(key: TaskName): DriverError {
  return new DriverError(
    'unknown',
    `task ${key} cannot run as a container here: the agent does not see its control group, and could not stop it when ` +
      'its lease runs out. Run agent and container engine on the same machine, both with the /sys/fs/cgroup of the node',
  );
}

// ---- The control groups of a container. The kernel names them once the container runs; the fence is armed before that,
// so their names have to be known beforehand: they carry the container's id.

/** As Docker names them with its `cgroupfs` and `systemd` drivers, and Podman likewise. */
function candidatePaths(id: string): readonly string[] {
  return [
    `/docker/${id}`,
    `/system.slice/docker-${id}.scope`,
    `/libpod_parent/libpod-${id}`,
    `/machine.slice/libpod-${id}.scope`,
  ];
}

/**
 * Where the groups of a container that has not been started may come into being, as absolute paths.
 * @param mountinfo of ourselves
 * @returns empty: no hierarchy that can freeze is mounted where we can see it
 */
export function candidateGroups(mountinfo: string, id: string): readonly string[] {
  // Where there is a version 1 freezer, engines use it, also beside version 2.
  const hierarchy = cgroupDirectory(mountinfo, 'freezer', '/') === null ? 'cgroup2' : 'freezer';
  return candidatePaths(id).flatMap((path) => cgroupDirectory(mountinfo, hierarchy, path) ?? []);
}

/**
 * The group of a process of a container, and nothing if it could be anybody else's: freezing the group of a slice, or our
 * own, would stop the node. So a part of its path has to name the container.
 * @param cgroups the process's /proc/<pid>/cgroup
 */
export function groupsOfProcess(mountinfo: string, cgroups: string, id: string): readonly string[] {
  const { freezer, cgroup2 } = parseCgroupHomes(mountinfo, cgroups);
  for (const home of [freezer, cgroup2]) {
    const parts = home?.split('/') ?? [];
    const own = parts.findIndex((part) => part.includes(id));
    // Below its own group a container may make others.
    if (own >= 0) return [parts.slice(0, own + 1).join('/')];
  }
  return [];
}

function readCandidateGroups(id: string): readonly string[] {
  return candidateGroups(readMounts(), id);
}

/** null: the process has ended. */
function readGroupsOfProcess(pid: number, id: string): readonly string[] | null {
  const cgroups = readKernelFileUnlessGone(`/proc/${pid}/cgroup`);
  return cgroups === null ? null : groupsOfProcess(readMounts(), cgroups, id);
}

function readMounts(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8');
}
