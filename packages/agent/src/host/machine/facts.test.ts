import { expect, test } from 'vitest';
import { type MachineAnswers, machineFactsOf } from './facts.ts';

const server: MachineAnswers = {
  machine: { manufacturer: 'Example Inc.', model: 'GPU Server' },
  board: { manufacturer: 'Example Inc.', model: 'Example Inc. X1' },
  firmware: { vendor: 'BIOS House', version: '2.1', releaseDate: '2026-01-31' },
  disks: [{ vendor: 'Drives', name: 'D990', type: 'NVMe', size: 2 ** 41 }],
  memory: [
    { size: 2 ** 36, type: 'DDR5', clockSpeed: 4_800, manufacturer: 'Chips', partNum: 'M321' },
    // An empty slot.
    { size: 0, type: 'Empty', clockSpeed: null, partNum: '' },
  ],
};

test('a server', () => {
  expect(machineFactsOf(server)).toEqual({
    model: 'Example Inc. GPU Server',
    board: 'Example Inc. X1',
    bios: 'BIOS House 2.1 2026-01-31',
    disks: [{ model: 'Drives D990', type: 'NVMe', sizeBytes: 2 ** 41 }],
    memoryModules: [{ sizeBytes: 2 ** 36, type: 'DDR5', clockMhz: 4_800, model: 'Chips M321' }],
  });
});

test.each(['', '-', 'To Be Filled By O.E.M.', 'Default string', 'Not Specified', 'None', 'Docker Container'])(
  'what says nothing is not told: "%s"',
  (word) => {
    const empty = { manufacturer: word, model: word };
    const facts = machineFactsOf({
      machine: empty,
      board: empty,
      firmware: { vendor: word, version: word, releaseDate: word },
      disks: [{ vendor: word, name: word, type: '', size: null }],
      // As it is told without the right to read the tables of the firmware.
      memory: [{ size: 2 ** 35, type: '', clockSpeed: 0, partNum: '' }],
    });
    expect(facts).toEqual({ model: null, board: null, bios: null, disks: [], memoryModules: [] });
  },
);

test('names of any length and kind stay short and plain', () => {
  const long = `\u001b[31m${'x'.repeat(10_000)}\n`;
  const facts = machineFactsOf({
    ...server,
    machine: { manufacturer: long, model: long },
    disks: Array.from({ length: 1_000 }, () => ({ vendor: '', name: long, type: 'SSD', size: Number.NaN })),
  });
  expect(facts.model?.length).toBe(100);
  expect(facts.model).not.toMatch(/\p{Cc}/u);
  expect(facts.disks).toHaveLength(64);
  expect(facts.disks[0]?.sizeBytes).toBeNull();
});
