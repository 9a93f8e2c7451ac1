import { emptyInventory, type MachineFacts } from '@muster/common/hardware';
import { expect, test } from 'vitest';
import { makeColours } from '../output/colours.ts';
import { aNode } from '../testing/fakeCoordinator.ts';
import { formatNode } from './nodeDetail.ts';

const options = { nowMs: 0, programName: 'muster', colours: makeColours(false) } as Parameters<
  typeof formatNode
>[1];

function textOf(machine: MachineFacts | null): string {
  return formatNode(aNode({ inventory: { ...emptyInventory, machine } }), options);
}

test('what the machine is made of, equal parts once', () => {
  const text = textOf({
    model: 'Example Inc. GPU Server',
    board: 'Example Inc. X1',
    bios: 'Example BIOS 2.1',
    disks: [
      { model: 'Example 990', type: 'NVMe', sizeBytes: 2 ** 40 },
      { model: 'Example RAID', type: '', sizeBytes: null },
    ],
    memoryModules: Array.from({ length: 16 }, () => ({
      sizeBytes: 2 ** 36,
      type: 'DDR5',
      clockMhz: 4_800,
      model: 'Example M321',
    })),
  });
  expect(text).toMatch(
    /^Machine +Example Inc\. GPU Server, board Example Inc\. X1, BIOS Example BIOS 2\.1$/m,
  );
  expect(text).toMatch(/^Drives +Example 990 {2}NVMe {2}1 TiB\n +Example RAID$/m);
  expect(text).toMatch(/^Modules +16 × 64 GiB {2}DDR5 {2}4800 MHz {2}Example M321$/m);
});

test('a machine that tells nothing of itself takes no lines', () => {
  const silent = { model: null, board: null, bios: null, disks: [], memoryModules: [] };
  expect(textOf(silent)).toBe(textOf(null));
  expect(textOf(null)).not.toMatch(/Machine|Drives|Modules/);
});
