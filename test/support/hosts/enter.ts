/** How this test puts a program into a machine: from outside, by the namespaces and control groups of its first process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { controlGroupsOf } from './controlGroups.ts';
import type { Machine } from './machine.ts';

/**
 * argv to put before that of a program, which then runs as root of the machine, as an agent does on a real one. What
 * starts is `nsenter`, which stays outside as the parent: the program is its child.
 */
export function enterMachine(machine: Machine): readonly string[] {
  const pid = runningPid(machine);
  const enterGroups = controlGroupsOf(pid).map((group) => `echo $$ > ${join(group, 'cgroup.procs')}`);
  const namespaces = [
    'mount',
    'uts',
    'ipc',
    'net',
    'pid',
    ...(existsSync('/proc/self/ns/cgroup') ? ['cgroup'] : []),
  ];
  const flags = namespaces.map((name) => `--${name}`).join(' ');
  const script = `${enterGroups.join(' && ')} && exec nsenter --target ${pid} ${flags} -- "$@"`;
  return ['sh', '-c', script, 'enter'];
}

/** argv to put before that of a program of this machine (ip, tc, iptables) that is to work on the network of a host. */
export function enterNetwork(machine: Machine): readonly string[] {
  return ['nsenter', `--net=/proc/${runningPid(machine)}/ns/net`, '--'];
}

/** argv to put before `mount`: root of this machine may change what a host sees, also where the host itself may not. */
export function enterMounts(pid: number): readonly string[] {
  return ['nsenter', '--target', String(pid), '--mount', '--'];
}

/** A path of the machine, as this test reaches it. */
export function seenFromOutside(machine: Machine, path: string): string {
  return join(`/proc/${runningPid(machine)}/root`, path);
}

function runningPid(machine: Machine): number {
  if (machine.initPid === null) throw new Error(`${machine.name} is switched off`);
  return machine.initPid;
}
