/** What the kernel logs of processes that it ends: for want of memory (mm/oom_kill.c), or of a segmentation fault. Pure. */

export interface KernelEnd {
  /** In the pid namespace of the host. */
  readonly pid: number;
  /** The line, at most 300 characters. */
  readonly text: string;
}

const lineLengthMax = 300;

/** A name may hold anything but is short; the kernel prints what follows it. */
const killedPattern =
  /^(?:Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Killed process (\d{1,10}) \(.{0,64}?\)(?:,| total-vm:)/;

/**
 * Only the line that says that the process was killed: the summary before it (`oom-kill:constraint=…`) names the same
 * one, and the announcement of older kernels (`Kill process … or sacrifice child`) may name its parent.
 * @param text of one record of the kernel itself
 */
export function parseOomKill(text: string): KernelEnd | null {
  for (const line of text.split('\n')) {
    const [, pid] = killedPattern.exec(line) ?? [];
    if (pid !== undefined) return { pid: Number(pid), text: line.slice(0, lineLengthMax) };
  }
  return null;
}

/** The fields that follow belong to the process. Its name may hold anything but is 15 characters at most. */
const summaryPattern =
  /^oom-kill:constraint=.{0,4000}?,task_memcg=(\/[^,\n]{0,4000}),task=.{0,16},pid=(\d{1,10}),uid=/s;

export interface OomSummary {
  readonly pid: number;
  /** The process's memory control group, relative to the root of its hierarchy. It begins with `/`. */
  readonly controlGroup: string;
}

/**
 * Of a kernel since 4.19: the record before the one that `parseOomKill` reads, and the only one that names the control
 * group.
 * @param text of one record of the kernel itself
 */
export function parseOomSummary(text: string): OomSummary | null {
  const [, controlGroup, pid] = summaryPattern.exec(text) ?? [];
  return controlGroup === undefined ? null : { pid: Number(pid), controlGroup };
}

/** `pt_main_thread[2536443]: segfault at 8 ip 00007f… sp 00007f… error 4 in libnccl.so.2[7f…+…]` (arch/x86/mm/fault.c) */
const segfaultPattern =
  /^.{1,64}?\[(\d{1,10})\]: segfault at [0-9a-f]{1,16} ip [0-9a-f]{1,16} sp [0-9a-f]{1,16} error /;

/** @param text of one record of the kernel itself */
export function parseSegfault(text: string): KernelEnd | null {
  const [line = ''] = text.split('\n', 1);
  const [, pid] = segfaultPattern.exec(line) ?? [];
  return pid === undefined ? null : { pid: Number(pid), text: line.slice(0, lineLengthMax) };
}
