import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type KernelFact, parseKernelText, samePci } from './kernelLines.ts';
import { parseKernelRecord } from './kernelLog.ts';

describe('records of /dev/kmsg', () => {
  test('a record has its sequence, its time and its text', () => {
    expect(parseKernelRecord('4,901,73500123,-;NVRM: loading')).toEqual({
      fromKernel: true,
      sequence: 901,
      uptimeMs: 73_500,
      text: 'NVRM: loading',
    });
  });

  test('escaped bytes are decoded, and what is no text but a line break becomes a blank', () => {
    const record = parseKernelRecord(String.raw`3,1,0,-,caller=T1;a\x0ab\x5cx0a \xc3\xa9 \x1b[31m`);
    expect(record?.text).toBe('a\nb\\x0a é  [31m');
  });

  test('what a program wrote into the log is known as that', () => {
    expect(parseKernelRecord('12,7,5,-;NVRM: Xid (PCI:0000:01:00): 79,')?.fromKernel).toBe(false);
  });

  test.each([' SUBSYSTEM=pci', '', 'garbage', '1,2;x', '-1,2,3,-;x', `${'9'.repeat(40)},1,2,-;x`])(
    '%j is no record',
    (line) => expect(parseKernelRecord(line)).toBeNull(),
  );
});

describe('lines of the driver', () => {
  const nothing: Omit<KernelFact, 'kind' | 'text'> = {
    number: null,
    pciBusId: null,
    pid: null,
    processName: null,
    fatal: null,
    unit: null,
    recoveryAction: null,
  };

  test.each<[string, Partial<KernelFact>]>([
    [
      'NVRM: Xid (PCI:0000:1b:00): 119, pid=77, name=trainer, Timeout after 6s',
      { kind: 'xid', number: 119, pciBusId: '0000:1b:00', pid: 77, processName: 'trainer' },
    ],
    [
      "NVRM: Xid (PCI:0000:1B:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception",
      { kind: 'xid', number: 13, pciBusId: '0000:1b:00' },
    ],
    [
      'NVRM: Xid (PCI:000d:00:00): 31, pid=3, Ch 1',
      { kind: 'xid', number: 31, pciBusId: '000d:00:00', pid: 3 },
    ],
    ['NVRM: Xid (0000:02:00): 79, gone', { kind: 'xid', number: 79, pciBusId: '0000:02:00' }],
    ['NVRM: Xid (PCI:0000:02:00.0): 48', { kind: 'xid', number: 48, pciBusId: '0000:02:00.0' }],
    [
      'NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link -1 (0x1 0x2)',
      { kind: 'xid', number: 149, pciBusId: '0009:01:00', fatal: true, unit: 'NETIR_LINK_EVT' },
    ],
    [
      'NVRM: Xid (PCI:0009:01:00): 145, RLW_CTRL Nonfatal XC1 i0 Link 03 (0x1)',
      { kind: 'xid', number: 145, pciBusId: '0009:01:00', fatal: false, unit: 'RLW_CTRL' },
    ],
    [
      'NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)',
      { kind: 'xid', number: 154, pciBusId: '0009:01:00', recoveryAction: 2 },
    ],
    [
      'nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 12028, Non-fatal, Link 32 egress error',
      { kind: 'sxid', number: 12028, pciBusId: '0000:07:00.0', fatal: false },
    ],
    [
      'nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up',
      { kind: 'sxid', number: 20034, pciBusId: '0000:05:00.0', fatal: true },
    ],
    ['NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.', { kind: 'fallen_off', pciBusId: '0000:91:00.0' }],
    [
      'NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).',
      { kind: 'gsp_errors', pciBusId: '0000:9b:00' },
    ],
  ])('%s', (text, expected) => {
    expect(parseKernelText(text)).toEqual([{ ...nothing, ...expected, text }]);
  });

  test('a GPU that never answered is reported in three lines of one record', () => {
    const text = [
      'NVRM: The NVIDIA GPU 0000:c1:00.0',
      'NVRM: (PCI ID: 10de:0001) installed in this system has',
      'NVRM: fallen off the bus and is not responding to commands.',
    ].join('\n');
    expect(parseKernelText(text)).toMatchObject([{ kind: 'fallen_off', pciBusId: '0000:c1:00.0' }]);
  });

  test.each([
    'nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 60',
    'nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Data {0x1, 0x2}',
    'nvidia-nvswitch2: open (major=510)',
    'NVRM: Xid (PCI:0000:07:00): 99999999, x',
    'NVRM: Xid (PCI:zz): 79, x',
    // Other parts of the kernel print what users give them.
    "tmpfs: Unknown parameter 'NVRM: Xid (PCI:0000:1b:00): 79, '",
    "tmpfs: Unknown parameter '\nNVRM: Xid (PCI:0000:1b:00): 79, '",
  ])('%j tells nothing', (text) => expect(parseKernelText(text)).toEqual([]));

  test('a line without end costs no more than a line', () => {
    const [fact] = parseKernelText(`NVRM: Xid (PCI:0000:1b:00): 13, ${'x'.repeat(1_000_000)}`);
    expect(fact?.text).toHaveLength(1000);
  });
});

test.each([
  ['0000:9b:00', '00000000:9b:00.0', true],
  ['000d:00:00', '0000000D:00:00.0', true],
  ['0000:10:1c', '00000000:10:1C.0', true],
  ['9b:00', '00000000:9b:00.0', true],
  ['0000:9b:00', '00000000:9b:01.0', false],
  ['0001:9b:00', '00000000:9b:00.0', false],
  ['', '', false],
  ['x:y:z', 'x:y:z', false],
])('%j and %j name the same card: %s', (a, b, same) => expect(samePci(a, b)).toBe(same));

// Captures of real machines, where they are at hand.
const captures = join(import.meta.dirname, '../../../../../shared/fixtures/nvidia/dmesg');

interface Expected {
  readonly xid?: number | null;
  readonly sxid?: number;
  readonly fallen_off_bus?: boolean;
  readonly pci?: string;
  readonly pid?: number;
  readonly name?: string;
  readonly severity?: string;
  readonly unit?: string;
  readonly count?: number;
}

const files = existsSync(captures) ? readdirSync(captures).filter((name) => name.endsWith('.log')) : [];
const expectations = existsSync(captures)
  ? (JSON.parse(readFileSync(join(captures, 'expected.json'), 'utf8')) as Record<string, Expected[]>)
  : {};

/** The text of a line of dmesg in any of its forms, or of a raw record. */
function textOf(line: string): string {
  const record = parseKernelRecord(line);
  return record?.text ?? line.replace(/^(?:kern +:\w+ *: \S+ |\[[^\]]+\] )/, '');
}

test.each(files)('the captured log %s', (file) => {
  const lines = readFileSync(join(captures, file), 'utf8').split('\n');
  const facts = lines.flatMap((line) => parseKernelText(textOf(line)));
  const numbered = facts.filter(({ kind }) => kind === 'xid' || kind === 'sxid');
  const expected = expectations[file];
  if (expected === undefined) throw new Error(`${file} has no expectation`);
  for (const want of expected) {
    const matching = facts.filter(
      (fact) =>
        (want.xid == null || (fact.kind === 'xid' && fact.number === want.xid)) &&
        (want.sxid === undefined || (fact.kind === 'sxid' && fact.number === want.sxid)) &&
        (want.fallen_off_bus === undefined || fact.kind === 'fallen_off') &&
        (want.pci === undefined || samePci(fact.pciBusId ?? '', want.pci)) &&
        (want.pid === undefined || fact.pid === want.pid) &&
        (want.name === undefined || fact.processName === want.name) &&
        (want.severity === undefined || fact.fatal === (want.severity === 'Fatal')) &&
        (want.unit === undefined || fact.unit === want.unit),
    );
    expect(matching, JSON.stringify(want)).toHaveLength(want.count ?? 1);
  }
  const total = expected.reduce((sum, { count, xid, sxid }) => {
    return sum + (xid != null || sxid !== undefined ? (count ?? 1) : 0);
  }, 0);
  expect(numbered).toHaveLength(total);
});
