import { expect, test } from 'vitest';
import { inTurn, taskPorts } from './portNumbers.ts';

const usual = { ephemeral: '32768\t60999\n', reserved: '\n' };

function spanOf(ports: readonly number[]) {
  return [ports[0], ports.at(-1), ports.length];
}

test('a range of their own, which the kernel hands out to nobody', () => {
  expect(spanOf(taskPorts(usual))).toEqual([20_000, 29_999, 10_000]);
  expect(spanOf(taskPorts({ ephemeral: null, reserved: null }))).toEqual([20_000, 29_999, 10_000]);
});

test('what is reserved for others stays theirs', () => {
  const ports = taskPorts({ ...usual, reserved: '20000,20002-20004,30000-31000\n' });
  expect(ports.slice(0, 3)).toEqual([20_001, 20_005, 20_006]);
});

test('a kernel that hands out nearly all leaves what is left', () => {
  expect(spanOf(taskPorts({ ...usual, ephemeral: '15000 60000' }))).toEqual([10_000, 65_535, 10_535]);
});

test('a kernel that hands out everything leaves no choice', () => {
  expect(spanOf(taskPorts({ ...usual, ephemeral: '1024 65535' }))).toEqual([10_000, 65_535, 55_536]);
});

test('none comes a second time before all others have', () => {
  const turn = inTurn([1, 2, 3, 4], () => 0.6);
  expect(Array.from({ length: 6 }, () => turn.next().value)).toEqual([3, 4, 1, 2, 3, 4]);
});
