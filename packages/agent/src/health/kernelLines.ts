/** Lines of the kernel log: of NVIDIA's driver and its NVSwitch driver, and of processes that the kernel has ended. Pure. */

export interface KernelFact {
  readonly kind:
    | 'xid'
    | 'sxid' /** A GPU no longer answers; there need not be an Xid. */
    | 'fallen_off'
    /** The GPU's own processor fails so often that the driver prints only some of it. */
    | 'gsp_errors';
  /** Of the Xid or SXid. */
  readonly number: number | null;
  /** As it was printed; of the switch for an SXid. `samePci` compares it. */
  readonly pciBusId: string | null;
  /** In the pid namespace of the host. */
  readonly pid: number | null;
  readonly processName: string | null;
  /** Its severity, as the line names it. */
  readonly fatal: boolean | null;
  /** Of Xids 144 to 150: the part of the NVLink hardware, `NETIR_LINK_EVT`. */
  readonly unit: string | null;
  /** Of Xid 154: what the driver now asks for, the number that NVML's field 230 has. */
  readonly recoveryAction: number | null;
  /** The line, at most 1000 characters. */
  readonly text: string;
}

const factLengthMax = 1000;
const xidMax = 9_999;
const sxidMax = 99_999;

const pci = String.raw`[0-9a-fA-F]{1,8}(?::[0-9a-fA-F]{1,4}){1,2}(?:\.[0-9a-fA-F])?`;
const xidPattern = new RegExp(
  String.raw`^NVRM: Xid \((?:PCI:)?(${pci})\): (\d{1,6})(?:,|$)(?: pid=([^,]{1,40}),)?(?: name=([^,]{1,64}),)? ?(.*)`,
);
const sxidPattern = new RegExp(String.raw`^nvidia-nvswitch\d+: SXid \(PCI:(${pci})\): (\d{1,6}), (.*)`);
/** One printk of three lines. */
const goneAtStartPattern = new RegExp(
  String.raw`^NVRM: The NVIDIA GPU (${pci})[\s\S]{0,400}?fallen off the bus`,
);
const gonePattern = new RegExp(String.raw`^NVRM: GPU (?:at )?(?:PCI:)?(${pci}): GPU has fallen off the bus`);
const gspPattern = new RegExp(
  String.raw`^NVRM: Rate limiting GSP RPC error prints for GPU at (?:PCI:)?(${pci})`,
);

/**
 * Only records that begin as the drivers' do: other parts of the kernel print what users give them (a mount option, a
 * file name), and that must not pass for a broken GPU.
 * @param text of one record, with its line breaks
 */
export function parseKernelText(text: string): readonly KernelFact[] {
  if (!/^(?:NVRM: |nvidia-nvswitch\d+: )/.test(text)) return [];
  const gone = goneAtStartPattern.exec(text);
  if (gone !== null) return [fact('fallen_off', gone[1], text.replaceAll('\n', ' '))];
  return text.split('\n').flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): KernelFact | null {
  const xid = xidPattern.exec(line);
  if (xid !== null) return xidFact(xid, line);
  const sxid = sxidPattern.exec(line);
  if (sxid !== null) return sxidFact(sxid, line);
  const gone = gonePattern.exec(line);
  if (gone !== null) return fact('fallen_off', gone[1], line);
  const gsp = gspPattern.exec(line);
  return gsp === null ? null : fact('gsp_errors', gsp[1], line);
}

function xidFact([, busId, digits, pid, processName, rest = '']: RegExpExecArray, line: string) {
  const number = Number(digits);
  if (number > xidMax) return null;
  return {
    ...fact('xid', busId, line),
    number,
    pid: pid !== undefined && /^\d{1,10}$/.test(pid) ? Number(pid) : null,
    processName: processName === undefined || processName === '<unknown>' ? null : processName,
    ...(isNvlink5(number) ? nvlink5(rest) : {}),
    recoveryAction: number === 154 ? recoveryAction(rest) : null,
  };
}

/** `NETIR_LINK_EVT  Fatal   XC0 i0 Link -1 (0x021425c6 …)` */
function nvlink5(rest: string): Pick<KernelFact, 'unit' | 'fatal'> {
  const [, unit = null, severity] = /^(\w+)\s+(Fatal|Non-?fatal)\b/i.exec(rest) ?? [];
  return { unit, fatal: severity === undefined ? null : severity.toLowerCase() === 'fatal' };
}

export function isNvlink5(xid: number): boolean {
  return xid >= 144 && xid <= 150;
}

function recoveryAction(rest: string): number | null {
  const action = /^GPU recovery action changed from 0x[0-9a-f]+ \([^)]*\) to 0x([0-9a-f]{1,4}) \(/i.exec(
    rest,
  );
  return action === null ? null : Number.parseInt(action[1] ?? '', 16);
}

/** An SXid is followed by lines with the same number that only carry its details. */
function sxidFact([, busId, digits, rest = '']: RegExpExecArray, line: string): KernelFact | null {
  const number = Number(digits);
  if (number > sxidMax || /^(?:Severity|Data)\b/.test(rest)) return null;
  const [severity] = /^(?:Fatal|Non-?fatal)\b/i.exec(rest) ?? [];
  return {
    ...fact('sxid', busId, line),
    number,
    fatal: severity === undefined ? null : severity.toLowerCase() === 'fatal',
  };
}

function fact(kind: KernelFact['kind'], busId: string | undefined, line: string): KernelFact {
  return {
    kind,
    number: null,
    pciBusId: busId?.toLowerCase() ?? null,
    pid: null,
    processName: null,
    fatal: null,
    unit: null,
    recoveryAction: null,
    text: line.trim().slice(0, factLengthMax),
  };
}

/**
 * Whether two ids name the same card. The kernel prints `0000:9b:00` or `000d:00:00`, NVML `00000000:9b:00.0`: domain, bus
 * and device decide, as numbers, and the function does not.
 */
export function samePci(a: string, b: string): boolean {
  const one = pciNumbers(a);
  return one !== null && one === pciNumbers(b);
}

function pciNumbers(busId: string): string | null {
  const match = /^(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,4}):([0-9a-f]{1,4})(?:\.[0-9a-f])?$/i.exec(busId);
  if (match === null) return null;
  const [, domain = '0', bus = '', device = ''] = match;
  return [domain, bus, device].map((part) => Number.parseInt(part, 16)).join(':');
}

// ---- Processes that end because memory ran out (mm/oom_kill.c), or by a segmentation fault

export interface KernelEnd {
  /** In the pid namespace of the host. */
  readonly pid: number;
  /** The line, at most 300 characters. */
  readonly text: string;
}

const endLengthMax = 300;

/** A name may hold anything but is short; the kernel prints what follows it. */
const killedPattern =
  /^(?:Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Killed process (\d{1,10}) \(.{0,64}?\)(?:,| total-vm:)/;

/**
 * Only the line that reports that the process was killed: the summary before it (`oom-kill:constraint=…`) names the same
 * one, and the announcement of older kernels (`Kill process … or sacrifice child`) may name its parent.
 * @param text of one record of the kernel itself
 */
export function parseOomKill(text: string): KernelEnd | null {
  for (const line of text.split('\n')) {
    const [, pid] = killedPattern.exec(line) ?? [];
    if (pid !== undefined) return { pid: Number(pid), text: line.slice(0, endLengthMax) };
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
  return pid === undefined ? null : { pid: Number(pid), text: line.slice(0, endLengthMax) };
}
