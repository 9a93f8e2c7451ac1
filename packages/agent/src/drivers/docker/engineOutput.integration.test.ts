/** Output that the engine keeps, because the image has no shell to open the file: copied with the real engine. */
import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { dockerSocketPath, tempDir, waitFor } from '../../../../../test/support/services.ts';
import type { TaskDriver, TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { RecordingFence } from '../recordingFence.ts';
import { containerDefaults } from './containerPolicy.ts';
import { createDockerDriver } from './dockerDriver.ts';

/** What containers may do, and a data directory that is nobody's. */
const here = { policy: containerDefaults, dataDir: '/var/lib/muster-of-a-test' };

const never = new AbortController().signal;
const partBytes = 16 * 1024;
const agentId = randomUUID();

let image = '';
beforeAll(async () => {
  image = await ensureTestImage({ tag: 'muster-test/shell-less:1', hasShell: false });
});

function aDriver(): TaskDriver {
  const fence = new RecordingFence();
  const socketPath = dockerSocketPath;
  return createDockerDriver({ ...here, socketPath, agentId, bootId: 'boot-1', fence, log: silentLogger });
}

function aScript(script: string): TaskLaunch {
  const launch = aLaunch({
    key: `e${randomUUID().slice(0, 13)}.1.0`,
    directory: tempDir('task').path,
    image,
    command: ['busybox', 'sh', '-c', script],
  });
  onTestFinished(async () => {
    const driver = aDriver();
    await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
    await driver.remove(launch);
    await driver.close();
  });
  return launch;
}

const outputPath = (launch: TaskLaunch) => join(launch.directory, 'output.log');

async function outputOf(script: string): Promise<string> {
  const launch = aScript(script);
  const driver = aDriver();
  await driver.start(launch);
  await driver.wait(launch, never);
  await driver.close();
  return readFileSync(outputPath(launch), 'utf8');
}

describe('output kept by the engine', () => {
  it('is copied exactly once over agent restarts in its middle', async () => {
    const [rounds, linesPerRound, lineBytes] = [5, 20_000, 200];
    const round = `awk -v from=$((i * ${linesPerRound})) 'BEGIN { for (n = 0; n < ${linesPerRound}; n++) printf "%0${lineBytes - 1}d\\n", from + n }'`;
    // Each round waits to be asked for, so that the restarts fall between its first and last byte.
    const asked = 'trap \'asked=1\' USR1; ask() { while [ -z "$asked" ]; do sleep 0.02; done; asked=; }';
    const launch = aScript(`${asked}; i=0; while [ $i -lt ${rounds} ]; do ${round}; ask; i=$((i + 1)); done`);

    const whole = Buffer.alloc(rounds * linesPerRound * lineBytes);
    for (let line = 0; line < rounds * linesPerRound; line++) {
      whole.write(`${String(line).padStart(lineBytes - 1, '0')}\n`, line * lineBytes);
    }
    const expectBeginning = (output: Buffer) =>
      expect(output.equals(whole.subarray(0, output.length)), `${output.length} bytes as written`).toBe(true);

    let driver = aDriver();
    await driver.start(launch);
    for (let i = 0; i < rounds; i++) {
      const half = (i + 0.5) * linesPerRound * lineBytes;
      await waitFor(`${half} bytes`, () => statSync(outputPath(launch)).size, {
        until: (size) => size >= half,
      });
      await driver.close();
      expectBeginning(readFileSync(outputPath(launch)));
      driver = aDriver();
      await driver.signal(launch, 'SIGUSR1');
      await driver.recover(launch);
    }
    expect(await driver.wait(launch, never)).toMatchObject({ exitCode: 0 });
    await driver.close();
    const output = readFileSync(outputPath(launch));
    expectBeginning(output);
    expect(output.length).toBe(whole.length);
  });

  it('keeps what an engine drops from a followed log when the task ends', async () => {
    for (let round = 0; round < 8; round++) {
      expect(await outputOf('echo first; sleep 0.1; printf tail')).toBe('first\ntail');
    }
  });

  it('keeps lines longer than the parts the engine makes of them', async () => {
    const long = (bytes: number) => `head -c ${bytes} /dev/zero | tr "\\0" x`;
    const script = [20_000, partBytes, 3 * partBytes, 5]
      .map((bytes) => `${long(bytes)}; echo; echo after`)
      .join(';');
    const expected = [20_000, partBytes, 3 * partBytes, 5]
      .map((bytes) => `${'x'.repeat(bytes)}\nafter\n`)
      .join('');
    expect(await outputOf(script)).toBe(expected);
  });

  it('keeps characters that a part ends within, and a long end without a newline', async () => {
    expect(await outputOf('yes █ | head -n 9000 | tr -d "\\n"')).toBe('█'.repeat(9000));
  });

  it('keeps bytes that are no text', async () => {
    const launch = aScript("printf '\\000\\001\\377\\376\\r\\n\\n\\200'");
    const driver = aDriver();
    await driver.start(launch);
    await driver.wait(launch, never);
    await driver.close();
    expect([...readFileSync(outputPath(launch))]).toEqual([0, 1, 255, 254, 13, 10, 10, 128]);
  });

  it('keeps the order within each stream', async () => {
    const output = await outputOf(
      'i=0; while [ $i -lt 500 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done',
    );
    const lines = output.trimEnd().split('\n');
    for (const stream of ['out', 'err']) {
      const expected = Array.from({ length: 500 }, (_, i) => `${stream} ${i}`);
      expect(lines.filter((line) => line.startsWith(stream))).toEqual(expected);
    }
    expect(lines).toHaveLength(1000);
  });

  it('is there while the task runs', async () => {
    const launch = aScript('echo early; sleep 1000');
    const driver = aDriver();
    await driver.start(launch);
    await waitFor('the first line', () => readFileSync(outputPath(launch), 'utf8') === 'early\n');
    await driver.close();
  });

  it('is whole as soon as a task is seen to have ended', async () => {
    const launch = aScript('seq 1 50000');
    const before = aDriver();
    await before.start(launch);
    await before.close();
    const after = aDriver();
    await waitFor('the end', async () => (await after.recover(launch)).kind === 'exited');
    expect(readFileSync(outputPath(launch), 'utf8').trimEnd().split('\n')).toHaveLength(50_000);
    await after.close();
  });
});
