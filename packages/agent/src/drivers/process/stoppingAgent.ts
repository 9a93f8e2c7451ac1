/** For tests: as much of an agent as it takes to be killed in the middle of a stop. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '@muster/common/log';
import type { TaskLaunch } from '../driver.ts';
import { createProcessDriver } from './driver.ts';

interface Orders {
  readonly guardCommand: readonly string[];
  readonly runtimeDir: string;
  readonly task: TaskLaunch;
  readonly graceMs: number;
}

const { guardCommand, runtimeDir, task, graceMs } = JSON.parse(process.argv[2] ?? '') as Orders;
const driver = createProcessDriver({ environment: {}, guardCommand, runtimeDir, log: silentLogger });
await driver.start(task);
const output = join(task.directory, 'output.log');
while (!existsSync(output) || !readFileSync(output, 'utf8').includes('ready\n')) await delay(20);
await driver.stop(task, { signal: 'SIGTERM', graceMs });
