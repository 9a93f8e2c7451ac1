import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@muster/common/clock';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir, waitFor } from '../../../../../test/support/services.ts';
import { emptyActivity, type ProfilingSource } from '../gpuSource.ts';
import { createDmonSource, type DmonOptions } from './dmonSource.ts';

const listing = `1 GPU found.
| 0      | Name: Some GPU        |
|        | Device UUID: GPU-aaaa |`;
const header = '#Entity   SMACT        TENSO\nID';

interface Played {
  readonly source: ProfilingSource;
  /** pids of the `dmon` processes so far, oldest first. */
  readonly started: () => readonly number[];
  readonly advance: (ms: number) => void;
}

/** A source above an sh script in the place of dcgmi, with a clock of the test. */
function played(
  dmon: string,
  {
    discovery = `cat <<'END'\n${listing}\nEND`,
    ...options
  }: Partial<DmonOptions> & { discovery?: string } = {},
): Played {
  const dir = tempDir('dmon');
  const dcgmiPath = join(dir.path, 'dcgmi');
  const pids = join(dir.path, 'pids');
  const script = `#!/bin/sh
if [ "$1" = discovery ]; then
${discovery}
exit
fi
echo $$ >> ${pids}
echo "$*" > ${join(dir.path, 'arguments')}
${dmon}
`;
  writeFileSync(dcgmiPath, script, { mode: 0o755 });
  let nowMs = 0;
  const source = createDmonSource({
    dcgmiPath,
    searchPath: '/usr/bin:/bin',
    clock: { monotonicMs: () => nowMs },
    restart: { initialMs: 1_000, maxMs: 4_000 },
    ...options,
  });
  onTestFinished(async () => {
    await source.close();
    await dir.remove();
  });
  return {
    source,
    started: () => (existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n').map(Number) : []),
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

const rows = (...values: string[]) => `cat <<'END'\n${header}\n${values.join('\n')}\nEND`;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('one process prints for all samples', async () => {
  const { source, started } = played(`${rows('GPU 0     0.912        0.433')}\nexec sleep 1000`);
  const values = new Map([['GPU-aaaa', { ...emptyActivity, smActive: 0.912, tensorActive: 0.433 }]]);
  expect(await source.sample()).toEqual(values);
  expect(await source.sample()).toEqual(values);
  const [pid = 0, ...others] = started();
  expect(others).toEqual([]);
  await source.close();
  expect(isAlive(pid)).toBe(false);
});

test('the newest row counts, also when it says that nothing was read', async () => {
  const { source } = played(
    `${rows('GPU 0     0.912        0.433', 'GPU 0     N/A          N/A', 'GPU 7 0.5 0.5')}\nexec sleep 1000`,
  );
  await waitFor('the second row', () => source.sample(), {
    until: (seen) => seen.get('GPU-aaaa')?.smActive === null,
  });
  expect(await source.sample()).toEqual(new Map([['GPU-aaaa', emptyActivity]]));
});

test('a process that ended is started again, but not at once', async () => {
  const { source, started, advance } = played(`echo 'Error: lost the host engine'; exit 3`);
  await expect(source.sample()).rejects.toThrow('dmon says: Error: lost the host engine');
  await expect(source.sample()).rejects.toThrow('lost the host engine');
  expect(started()).toHaveLength(1);
  advance(1_000);
  await expect(source.sample()).rejects.toThrow('lost the host engine');
  expect(started()).toHaveLength(2);
  advance(1_999);
  await expect(source.sample()).rejects.toThrow('lost the host engine');
  expect(started()).toHaveLength(2);
  advance(1);
  await expect(source.sample()).rejects.toThrow('lost the host engine');
  expect(started()).toHaveLength(3);
});

test('a process that prints nothing any more is killed, with what it started, and old rows are no sample', async () => {
  const { source, started, advance } = played(
    `${rows('GPU 0 0.5 0.5')}\nsleep 1000 &\necho $! >> "$(dirname "$0")/pids"\ntrap '' TERM\nwait`,
  );
  expect((await source.sample()).size).toBe(1);
  await waitFor('the script and its child', () => started().length === 2);
  advance(10_001);
  await expect(source.sample()).rejects.toThrow('has printed nothing for too long');
  await waitFor('both are gone', () => !started().some(isAlive));
});

test('a process that never prints a row makes only the first samples wait', async () => {
  const { source } = played('exec sleep 1000', { firstRowsTimeoutMs: 50 });
  await expect(source.sample()).rejects.toThrow('has printed no rows yet');
  await expect(source.sample()).rejects.toThrow('has printed no rows yet');
});

test('10 MB of garbage end the process', async () => {
  const { source, advance, started } = played(`head -c 10000000 /dev/zero | tr '\\0' 'x'; exec sleep 1000`);
  await expect(source.sample()).rejects.toThrow('dmon prints something other than rows');
  expect(started().some(isAlive)).toBe(false);
  advance(1_000);
  await expect(source.sample()).rejects.toThrow('dmon prints something other than rows');
});

test('far more rows than there can be end the process', async () => {
  const { source } = played(`while :; do echo '#Entity GRACT'; echo 'GPU 1 0.5'; done`, {
    firstRowsTimeoutMs: 120_000,
  });
  await expect(source.sample()).rejects.toThrow('dmon prints far more than rows');
});

test('without a card to print about nothing is started', async () => {
  const { source, started } = played('exec sleep 1000', { discovery: `echo '0 GPUs found.'` });
  await expect(source.sample()).rejects.toThrow('discovery -l names no GPU (0 GPUs found.)');
  expect(started()).toEqual([]);
});

test('a host engine that is not there is reported in the words of dcgmi', async () => {
  const { source } = played('exit 0', { discovery: `echo 'Error: unable to connect'; exit 1` });
  await expect(source.sample()).rejects.toThrow('failed: discovery -l: Error: unable to connect');
});

test('a machine without dcgmi has no such source', async () => {
  const source = createDmonSource({ dcgmiPath: 'no-such-dcgmi', searchPath: '/usr/bin', clock: systemClock });
  await expect(source.sample()).rejects.toThrow(
    'no-such-dcgmi dmon cannot be run, since there is no such program; install DCGM',
  );
  await source.close();
});

test('closing ends a discovery that hangs', async () => {
  const { source, started } = played('exit 0', {
    discovery: 'echo $$ >> "$(dirname "$0")/pids"; exec sleep 1000',
  });
  const sample = source.sample();
  sample.catch(() => {});
  await waitFor('the discovery', () => started().length === 1);
  await source.close();
  await expect(sample).rejects.toThrow('dmon');
  expect(started().some(isAlive)).toBe(false);
  await expect(source.sample()).rejects.toThrow('is closed');
});
