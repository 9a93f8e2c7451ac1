import { describe, expect, test } from 'vitest';
import { parseList } from './inventory.ts';
import { capture, hasCaptures } from './testing/captures.ts';

test('cards, and the instances of those in MIG mode', () => {
  const text = `GPU 0: NVIDIA Test (40GB) (UUID: GPU-aaaa)
  MIG 1c.3g.20gb  Device  0: (UUID: MIG-0001)
  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-aaaa/9/0)
GPU 3: NVIDIA Test (UUID: GPU-bbbb)
something else
`;
  expect(parseList(text)).toEqual([
    {
      index: 0,
      uuid: 'GPU-aaaa',
      migDevices: [
        { index: 0, uuid: 'MIG-0001', profile: '1c.3g.20gb' },
        { index: 1, uuid: 'MIG-GPU-aaaa/9/0', profile: '1g.5gb' },
      ],
    },
    { index: 3, uuid: 'GPU-bbbb', migDevices: [] },
  ]);
});

test.each(['', 'No devices were found', '  MIG 1g.5gb Device 0: (UUID: MIG-1)'])(
  '%j lists nothing',
  (text) => {
    expect(parseList(text)).toEqual([]);
  },
);

describe.runIf(hasCaptures)('captured lists', () => {
  test('an H200 in MIG mode', () => {
    const [card, ...others] = parseList(capture('smi-list', 'h200-mig-r590.txt'));
    expect(others).toEqual([]);
    expect(card?.migDevices.map(({ index, profile }) => [index, profile])).toEqual([
      [0, '1c.3g.71gb'],
      [1, '2c.3g.71gb'],
      [2, '2g.35gb'],
      [3, '1g.18gb'],
      [4, '1g.18gb'],
    ]);
    expect(card?.migDevices[1]?.uuid).toBe('MIG-00000001-0000-0000-0000-000000000001');
  });

  test.each(['h100-80g-r590', 'l40s-r595', 'rtx2080s-r595', 'rtx2080s-r610', 'rtx4080s-r595'])(
    '%s',
    (name) => {
      expect(parseList(capture('smi-list', `${name}.txt`))).toEqual([
        { index: 0, uuid: 'GPU-00000000-0000-0000-0000-000000000000', migDevices: [] },
      ]);
    },
  );
});
