import { expect, test } from 'vitest';
import { emptyActivity } from '../gpuSource.ts';
import { DmonParser, dmonFieldIds, parseDiscovery } from './dmonOutput.ts';

function rowsOf(output: string) {
  const parser = new DmonParser();
  return output.split('\n').flatMap((line) => {
    const found = parser.line(line);
    return found.kind === 'row' ? [found.row] : [];
  });
}

test('columns are found by their header, in any order, and again when it changes', () => {
  const output = `#Entity   GPUTL        SMACT        PCITX
ID
GPU 0     97           0.912        589824
GPU 1     N/A          N/A          N/A
#Entity   TENSO        GRACT
ID
GPU 0     0.433        1.001
`;
  expect(rowsOf(output)).toEqual([
    { gpuId: 0, activity: { ...emptyActivity, smActive: 0.912, pcieTxBytes: 589_824 } },
    { gpuId: 1, activity: emptyActivity },
    { gpuId: 0, activity: { ...emptyActivity, tensorActive: 0.433, graphicsActive: 1 } },
  ]);
});

test('instances of MIG are passed over', () => {
  const output = '#Entity GRACT\nID\nGPU 0 0.5\nGPU-I 0 0.25\nGPU-CI 0 0.125\n';
  expect(rowsOf(output)).toEqual([{ gpuId: 0, activity: { ...emptyActivity, graphicsActive: 0.5 } }]);
});

test.each([
  ['before its header', 'GPU 0 0.5'],
  ['with a cell too many', '#Entity GRACT\nGPU 0 0.5 0.6'],
  ['with a cell too few', '#Entity GRACT SMACT\nGPU 0 0.5'],
  ['of something else', '#Entity GRACT\nSwitch 0 0.5'],
  ['cut off', '#Entity GRACT\nGPU 0'],
  ['without a number', '#Entity GRACT\nGPU x 0.5'],
])('a row %s is no row', (_, output) => {
  expect(rowsOf(output)).toEqual([]);
});

test('what is no row is handed on as text, shortened', () => {
  const parser = new DmonParser();
  expect(parser.line('Error: unable to connect to the host engine')).toEqual({
    kind: 'text',
    text: 'Error: unable to connect to the host engine',
  });
  expect(parser.line('x'.repeat(100_000))).toEqual({ kind: 'text', text: 'x'.repeat(300) });
});

test('all fields are asked for by number', () => {
  expect(dmonFieldIds).toBe('1001,1002,1003,1004,1005,1006,1007,1008,1009,1010,1011,1012');
});

test('discovery names the cards by number', () => {
  const output = `2 GPUs found.
+--------+----------------------------------------------+
| GPU ID | Device Information                           |
+--------+----------------------------------------------+
| 0      | Name: Some GPU                               |
|        | PCI Bus ID: 00000000:1B:00.0                 |
|        | Device UUID: GPU-aaaa                        |
+--------+----------------------------------------------+
| 3      | Name: Some GPU                               |
|        | PCI Bus ID: 00000000:43:00.0                 |
|        | Device UUID: GPU-bbbb                        |
+--------+----------------------------------------------+
0 NvSwitches found.
+-----------+
| Switch ID |
+-----------+
|           | Device UUID: GPU-not-a-card |
+-----------+
`;
  expect(parseDiscovery(output)).toEqual(
    new Map([
      [0, 'GPU-aaaa'],
      [3, 'GPU-bbbb'],
    ]),
  );
});

test('an error instead of a listing names no cards', () => {
  expect(
    parseDiscovery('Error: unable to establish a connection to the specified host: localhost').size,
  ).toBe(0);
});
