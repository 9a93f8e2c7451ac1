import { bareGpu, type DeviceLink, type Gpu } from '@muster/common/hardware';
import { describe, expect, test } from 'vitest';
import { chooseGpus } from './gpuSet.ts';

/** GPUs named 0, 1, 2 … */
function gpus(count: number, more: (index: number) => Partial<Gpu> = () => ({})): readonly Gpu[] {
  return Array.from({ length: count }, (_, index) => ({ ...bareGpu(String(index)), ...more(index) }));
}

function links(count: number, kind: (a: number, b: number) => string): readonly DeviceLink[] {
  return Array.from({ length: count }, (_, a) =>
    Array.from({ length: count - a - 1 }, (_unused, offset) => a + 1 + offset).map((b) => ({
      from: String(a),
      to: String(b),
      kind: kind(a, b),
    })),
  ).flat();
}

function chosen(free: readonly Gpu[], count: number, of: readonly DeviceLink[]): string {
  return chooseGpus(free, count, of)
    .map(({ uuid }) => uuid)
    .join(' ');
}

/** Two sockets of four; within a socket two pairs, each below a switch of its own. */
const twoSockets = links(8, (a, b) => {
  if (a >> 1 === b >> 1) return 'PIX';
  return a >> 2 === b >> 2 ? 'PHB' : 'SYS';
});

/** Eight in a cube: each face of four is fully connected, and each GPU has one neighbour on the other face. */
const cube = links(8, (a, b) => {
  if (a >> 2 === b >> 2) return (a ^ b) === 3 ? 'NV2' : 'NV1';
  return b - a === 4 ? 'NV2' : 'SYS';
});

describe('a set of GPUs', () => {
  test('is the first ones when nothing tells them apart', () => {
    expect(chosen(gpus(8), 3, [])).toBe('0 1 2');
    expect(
      chosen(
        gpus(8),
        3,
        links(8, () => 'NV18'),
      ),
    ).toBe('0 1 2');
  });

  test('stays below one switch, and below one socket', () => {
    expect(chosen(gpus(8), 2, twoSockets)).toBe('0 1');
    expect(chosen(gpus(8), 4, twoSockets)).toBe('0 1 2 3');
    const [, ...withoutFirst] = gpus(8);
    expect(chosen(withoutFirst, 2, twoSockets)).toBe('2 3');
    expect(chosen(withoutFirst, 4, twoSockets)).toBe('4 5 6 7');
  });

  test('has the best slowest link, before the best sum', () => {
    // 0-1-2 have two fast links and a slow one; 3-4-5 have three middling ones.
    const kinds: Readonly<Record<string, string>> = {
      '01': 'NV12',
      '12': 'NV12',
      '34': 'PIX',
      '35': 'PIX',
      '45': 'PIX',
    };
    const uneven = links(6, (a, b) => kinds[`${a}${b}`] ?? 'SYS');
    expect(chosen(gpus(6), 3, uneven)).toBe('3 4 5');
  });

  test('of a cube is a face, not four neighbours that have to cross the sockets', () => {
    expect(chosen(gpus(8), 4, cube)).toBe('0 1 2 3');
    const withoutTwo = gpus(8).filter(({ uuid }) => uuid !== '2');
    expect(chosen(withoutTwo, 4, cube)).toBe('4 5 6 7');
    expect(chosen(gpus(8), 2, cube)).toBe('0 3');
  });

  test('is on one NUMA node when the links are equal', () => {
    const alternating = gpus(4, (index) => ({ numaNode: index % 2 }));
    expect(
      chosen(
        alternating,
        2,
        links(4, () => 'NODE'),
      ),
    ).toBe('0 2');
  });

  test('leaves the largest connected group to the next task', () => {
    // 0-1-2 are a triangle, 3 is alone: a single GPU is taken where it breaks nothing.
    const triangle = links(4, (_, b) => (b === 3 ? 'SYS' : 'NV4'));
    expect(chosen(gpus(4), 1, triangle)).toBe('3');
  });

  test('knows instances of one card by the card', () => {
    const instance = (uuid: string, parentUuid: string): Gpu => ({
      ...bareGpu(uuid),
      mig: { parentUuid, profile: '1g.10gb', gpuInstanceId: 1, computeInstanceId: 0 },
    });
    const devices = [instance('m0', '0'), instance('m1', '1'), instance('m2', '1')];
    expect(
      chosen(
        devices,
        2,
        links(2, () => 'SYS'),
      ),
    ).toBe('m1 m2');
  });

  test('may be all or none of them', () => {
    expect(chosen(gpus(2), 2, twoSockets)).toBe('0 1');
    expect(chosen(gpus(2), 0, twoSockets)).toBe('');
  });

  test('is found among more GPUs than can be tried out', () => {
    const boards = links(32, (a, b) => (a % 4 === b % 4 ? 'NV8' : 'SYS'));
    expect(chosen(gpus(32), 8, boards)).toBe('0 4 8 12 16 20 24 28');
  });
});
