/** Whether CPU and memory limits of jobs without an image hold on this machine. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupDirectory, parseCgroupHomes } from '../fence/cgroupMounts.ts';
import { type LimitController, limitControllers } from '../fence/tasksUnit.ts';
import { tryReadKernelFile } from '../host/kernelFiles.ts';
import type { DoctorCheck } from './doctorReport.ts';

/** What the check reads of this machine. */
export interface LimitFacts {
  readonly isRoot: boolean;
  /** Services of systemd are outside of any sandbox that this process may be in. */
  readonly hasSystemd: boolean;
  /** Of this process. */
  readonly mountinfo: string;
  readonly cgroups: string;
  readonly isWritable: (path: string) => boolean;
  /** null: there is no such file. */
  readonly read: (path: string) => string | null;
}

const tasksUnitGroup = '/system.slice/muster-tasks.service';

export function readLimitFacts(): LimitFacts {
  return {
    isRoot: process.geteuid?.() === 0,
    hasSystemd: existsSync('/run/systemd/system'),
    mountinfo: readFileSync('/proc/self/mountinfo', 'utf8'),
    cgroups: readFileSync('/proc/self/cgroup', 'utf8'),
    isWritable,
    read: tryReadKernelFile,
  };
}

export function examineLimits(facts: LimitFacts): DoctorCheck {
  const about = { area: 'processes', name: 'CPU and memory limits', chosen: false, evidence: null };
  if (!facts.isRoot) {
    const message = 'not enforced: only root makes control groups; those of containers hold';
    return { ...about, state: 'absent', message, remedy: null };
  }
  const enforcers = limitControllers.map(
    (controller) => [controller, enforcerOf(controller, facts)] as const,
  );
  const missing = enforcers.filter(([, enforcer]) => enforcer === null).map(([controller]) => controller);
  if (missing.length === 0) {
    const [, enforcer] = enforcers[0] ?? [];
    return { ...about, state: 'ok', message: `enforced, by control groups of ${enforcer}`, remedy: null };
  }
  return {
    ...about,
    state: 'warning',
    message: `not enforced for ${missing.join(' and ')}: the scheduler counts what jobs ask for, and nothing holds them to it`,
    remedy:
      'With control groups of version 2 they hold under the services of `muster install agent`: systemctl status muster-tasks',
  };
}

/** How a limit is enforced here. null: it is not. */
function enforcerOf(controller: LimitController, facts: LimitFacts): string | null {
  const { mountinfo, cgroups, read, isWritable: canWrite, hasSystemd } = facts;
  const own = parseCgroupHomes(mountinfo, cgroups)[controller];
  if (own !== null) return canWrite(own) || hasSystemd ? 'version 1' : null;
  const unit = cgroupDirectory(mountinfo, 'cgroup2', tasksUnitGroup);
  const offered = unit === null ? null : read(join(unit, 'cgroup.controllers'));
  return offered?.split(/\s+/).includes(controller) === true ? 'version 2, in muster-tasks.service' : null;
}

/** Also of root: a read-only mount refuses. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
