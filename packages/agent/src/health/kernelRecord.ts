/**
 * Records of /dev/kmsg (the kernel's Documentation/ABI/testing/dev-kmsg), one per line:
 *
 *     3,1822,118740221,-;NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: …) installed in this system has
 *      SUBSYSTEM=pci
 *
 * priority and facility, sequence, microseconds, flags; text. Lines that begin with a blank belong to the record before
 * and say nothing of interest here.
 */

export interface KernelRecord {
  /**
   * Whether the kernel itself wrote it. Programs can write into /dev/kmsg, but not with the kernel's facility: what they
   * write must not pass for a broken GPU.
   */
  readonly fromKernel: boolean;
  /** Counts up by one from boot to boot. */
  readonly sequence: number;
  /** Since boot. */
  readonly uptimeMs: number;
  /** With line breaks, without other control characters. */
  readonly text: string;
}

/** Longer than any record that the kernel makes (PRINTK_MESSAGE_MAX is 2048). */
const textLengthMax = 4096;

/** @returns null for a continuation line and for anything that is no record */
export function parseKernelRecord(line: string): KernelRecord | null {
  const match = /^(\d{1,9}),(\d{1,15}),(\d{1,15}),[^;]{0,200};/.exec(line);
  if (match === null) return null;
  const [head, priority, sequence, microseconds] = match;
  return {
    fromKernel: Number(priority) >> 3 === 0,
    sequence: Number(sequence),
    uptimeMs: Math.floor(Number(microseconds) / 1000),
    text: readable(unescape(line.slice(head.length, head.length + textLengthMax))),
  };
}

/** The kernel writes every byte that is no printable ASCII character, and the backslash, as `\xNN`. */
function unescape(text: string): string {
  return text.replace(/(?:\\x[0-9a-f]{2})+/gi, (bytes) =>
    Buffer.from(bytes.replaceAll('\\x', ''), 'hex').toString('utf8'),
  );
}

/** Log lines end up on terminals, where an escape sequence would be obeyed. */
function readable(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, ' ');
}
