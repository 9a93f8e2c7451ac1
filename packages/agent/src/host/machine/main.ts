/**
 * Reads what this machine is made of: a process of its own, because the library behind it starts dozens of programs, and
 * because its memory is needed once. It prints one JSON object and ends.
 *
 *     machine-reader
 */
import { baseboard, bios, diskLayout, memLayout, system } from 'systeminformation';
import { machineFactsOf } from './facts.ts';

const [machine, board, firmware, disks, memory] = await Promise.all([
  system(),
  baseboard(),
  bios(),
  diskLayout(),
  memLayout(),
]);
process.stdout.write(JSON.stringify(machineFactsOf({ machine, board, firmware, disks, memory })));
