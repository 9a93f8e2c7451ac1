/** Tasks that write without end, on disks that would be full within a second: nobody else loses anything by it. */
import { readdirSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';
import { expectSameText } from '../support/text.ts';

const megabyte = 1024 * 1024;
const coordinatorDiskMb = 160;
const reserveMb = 50;

function freeMb(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return (bavail * bsize) / megabyte;
}

function bytesBelow(directory: string): number {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) =>
        sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
}

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({
    coordinatorDiskMb,
    agentDiskMb: 400,
    coordinatorFlags: ['--reserve-mb', String(reserveMb)],
  });
});

describe('a process that writes without end', () => {
  test('is held back on full disks, and whoever writes little loses nothing', async () => {
    const gate = tempDir('gate').path;
    const until = (name: string) => `while [ ! -e ${join(gate, name)} ]`;
    const quiet = await cluster.submit({
      command: `i=0; ${until('quiet')}; do echo tick $i; i=$((i+1)); sleep 0.05; done; echo end`,
    });
    await cluster.untilOutput(quiet, 'tick 1\n');
    const noisy = await cluster.submit({
      command: `echo first; yes & ${until('noisy')}; do sleep 0.1; done; kill $!; wait; echo; echo last`,
    });
    const agentDir = cluster.agentDataDir(cluster.agent(0));

    // While it writes, both ends hold it back and report that, and all other jobs run as usual.
    const kindsOf = async () =>
      (await cluster.events()).filter(({ subject }) => subject === noisy).map(({ kind }) => kind);
    await waitFor('it is told that output was dropped, and that the task is held back', kindsOf, {
      until: (kinds) => kinds.includes('log.truncated') && kinds.includes('log.throttled'),
    });
    for (let count = 0; count < 3; count += 1) {
      expect(await cluster.run({ command: 'echo well' })).toMatchObject({ state: 'succeeded' });
      expect(freeMb(cluster.dataDir)).toBeGreaterThan(reserveMb);
      expect(bytesBelow(join(cluster.dataDir, 'logs'))).toBeLessThan((coordinatorDiskMb / 5) * megabyte);
      await delay(100);
    }
    await waitFor('the node has room', () => freeMb(agentDir), { until: (free) => free > 100 });

    // Afterwards all is well by itself.
    for (const name of ['noisy', 'quiet']) writeFileSync(join(gate, name), '');
    expect(await cluster.untilEnded(noisy)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
    expect(await cluster.untilEnded(quiet)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
    const ticks = await cluster.output(quiet);
    const count = ticks.split('\n').length - 2;
    expectSameText(
      ticks,
      `${Array.from({ length: count }, (_each, index) => `tick ${index}\n`).join('')}end\n`,
    );
    const text = await cluster.output(noisy);
    expect(text.slice(0, 10)).toBe('first\ny\ny\n');
    expect(text).toMatch(
      /\n\[muster\] \d+ bytes of output were dropped: more than [^\n]* keeps of one task\n/,
    );
    expect(text.slice(-8)).toMatch(/\nlast\n$/);
    expect((await kindsOf()).filter((kind) => kind.startsWith('log.')).sort()).toEqual([
      'log.throttled',
      'log.truncated',
    ]);
    await waitFor('the node has let go of it', () => bytesBelow(join(agentDir, 'tasks')), {
      until: (bytes) => bytes < megabyte,
    });
  });
});
