/** What the kernel logs when it ends a process because memory is short (mm/oom_kill.c). Pure. */

export interface OomKill {
  /** In the pid namespace of the host. */
  readonly pid: number;
  /** As the kernel shortens it, 15 characters. */
  readonly processName: string;
  /** Memory was short in a control group, and not on the whole machine. */
  readonly inGroup: boolean;
  /** The line, at most 300 characters. */
  readonly text: string;
}

const lineLengthMax = 300;

/** A name may hold anything but is short; the kernel prints what follows it. */
const killedPattern =
  /^(Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Killed process (\d{1,10}) \((.{0,64}?)\)(?:,| total-vm:)/;

/**
 * Only the line that says that the process was killed: the summary before it (`oom-kill:constraint=…`) names the same
 * one, and the announcement of older kernels (`Kill process … or sacrifice child`) may name its parent.
 * @param text of one record of the kernel itself
 */
export function parseOomKill(text: string): OomKill | null {
  for (const line of text.split('\n')) {
    const [, what, pid, processName] = killedPattern.exec(line) ?? [];
    if (what === undefined || pid === undefined || processName === undefined) continue;
    const inGroup = what.startsWith('Memory cgroup');
    return { pid: Number(pid), processName, inGroup, text: line.slice(0, lineLengthMax) };
  }
  return null;
}
