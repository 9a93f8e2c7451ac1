import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Gpu } from '@muster/common/hardware';
import type { JobId, TaskRef } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { HpcJobFiles } from './hpcJobFiles.ts';
import { aCard, anInstance } from './testing/parts.ts';

const aJob = 'job_0123456789ab' as JobId;
const otherJob = 'job_zzzzzzzzzzzz' as JobId;

function aDirectory() {
  const { path, remove } = tempDir('hpc-jobs');
  onTestFinished(remove);
  const dir = join(path, 'maps');
  const warnings: string[] = [];
  const files = new HpcJobFiles({
    dir,
    log: { ...silentLogger, warn: (_, message) => warnings.push(message) },
  });
  return {
    dir,
    outside: path,
    warnings,
    files,
    /** What the directory holds when the files are as these holders want them. */
    async after(...held: readonly (readonly [Gpu, JobId | null])[]) {
      const holders = held.flatMap(([gpu, jobId]): [string, TaskRef][] =>
        jobId === null ? [] : [[gpu.uuid, { jobId, attempt: 1, nodeRank: 0 }]],
      );
      files.update(
        held.map(([gpu]) => gpu),
        new Map(holders),
      );
      await files.settled();
      return contentOf(dir);
    },
  };
}

function contentOf(dir: string): Record<string, string> {
  return Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'utf8')]));
}

test('each GPU that a task holds has a file with the job, by number', async () => {
  const { after } = aDirectory();
  expect(await after([aCard(0), aJob], [aCard(1), null], [aCard(3), otherJob])).toEqual({
    '0': `${aJob}\n`,
    '3': `${otherJob}\n`,
  });
});

test('the exporter can read them, whatever the umask of the agent is', async () => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  const directory = aDirectory();
  await directory.after([aCard(0), aJob]);
  expect(statSync(join(directory.dir, '0')).mode & 0o777).toBe(0o644);
});

test('files follow the holders and go with them', async () => {
  const { after } = aDirectory();
  expect(await after([aCard(0), aJob], [aCard(1), aJob])).toEqual({ '0': `${aJob}\n`, '1': `${aJob}\n` });
  expect(await after([aCard(0), otherJob], [aCard(1), null])).toEqual({ '0': `${otherJob}\n` });
  expect(await after([aCard(0), null], [aCard(1), null])).toEqual({});
});

test('only the last of many changes has to be there', async () => {
  const { files, after } = aDirectory();
  for (const job of [aJob, otherJob, aJob])
    files.update([aCard(0)], new Map([[aCard(0).uuid, { jobId: job, attempt: 1, nodeRank: 0 }]]));
  expect(await after([aCard(0), otherJob])).toEqual({ '0': `${otherJob}\n` });
});

test('instances have files of their own, and jobs that share one a line each', async () => {
  const { after } = aDirectory();
  expect(await after([anInstance(7), aJob], [anInstance(8, 0), otherJob], [anInstance(8, 1), aJob])).toEqual({
    '0.7': `${aJob}\n`,
    '0.8': `${aJob}\n${otherJob}\n`,
  });
});

test('a simulated card must not label a real one, and one without a number cannot be named', async () => {
  const { after } = aDirectory();
  expect(await after([aCard(0, { simulated: true }), aJob], [aCard(1, { index: null }), aJob])).toEqual({});
});

test('at the start what is left of ended tasks goes, and what is not ours stays', async () => {
  const { dir, after } = aDirectory();
  mkdirSync(dir);
  const foreign = { '1': '4711\n', '2': `${aJob}\n4711\n`, '3': '', notes: `${aJob}\n` };
  for (const [name, content] of Object.entries({ '0': `${aJob}\n`, '0.7': `${aJob}\n`, ...foreign }))
    writeFileSync(join(dir, name), content);
  expect(await after([aCard(0), null])).toEqual(foreign);
});

test('the file of another batch system is left as it is, which is reported once', async () => {
  const { dir, after, warnings } = aDirectory();
  mkdirSync(dir);
  writeFileSync(join(dir, '0'), '4711\n');
  expect(await after([aCard(0), aJob])).toEqual({ '0': '4711\n' });
  expect(await after([aCard(0), aJob], [aCard(1), aJob])).toEqual({ '0': '4711\n', '1': `${aJob}\n` });
  expect(warnings).toEqual([
    `${join(dir, '0')} is not one of Muster's files and is left as it is; remove it if it is stale`,
  ]);
});

test('links are neither followed nor removed', async () => {
  const { dir, outside, files, warnings } = aDirectory();
  mkdirSync(dir);
  const target = join(outside, 'target');
  writeFileSync(target, `${aJob}\n`);
  symlinkSync(target, join(dir, '0'));
  symlinkSync(target, join(dir, '1'));
  symlinkSync(target, join(dir, '.muster-new'));
  mkdirSync(join(dir, '3'));
  files.update(
    [aCard(0), aCard(2)],
    new Map([aCard(0), aCard(2)].map(({ uuid }) => [uuid, { jobId: otherJob, attempt: 1, nodeRank: 0 }])),
  );
  await files.settled();
  expect(readFileSync(target, 'utf8')).toBe(`${aJob}\n`);
  expect(
    readdirSync(dir, { withFileTypes: true }).map((entry) => [entry.name, entry.isSymbolicLink()]),
  ).toEqual([
    ['0', true],
    ['1', true],
    ['2', false],
    ['3', false],
  ]);
  expect(warnings).toHaveLength(1);
});

test('a directory that cannot be used is reported once, and used when it can be', async () => {
  const { dir, outside, files, after, warnings } = aDirectory();
  const elsewhere = join(outside, 'elsewhere');
  mkdirSync(elsewhere);
  symlinkSync(elsewhere, dir);
  expect(await after([aCard(0), aJob])).toEqual({});
  expect(await after([aCard(0), aJob])).toEqual({});
  expect(warnings).toEqual([
    `the job files for dcgm-exporter cannot be kept: ${dir} is not a directory; name the directory itself, not a link to it`,
  ]);
  rmSync(dir);
  expect(await after([aCard(0), aJob])).toEqual({ '0': `${aJob}\n` });
  await files.settled();
});
