/** Triggers by data, on directories of the test's own and a clock that the test moves. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import type { TriggerView } from '@muster/common/triggers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nextRound } from '../work/inOrder.ts';
import { listData, listingProblemOf } from './dataListing.ts';
import { DataWatch, listedWithinMs, settledAfterMs } from './dataWatch.ts';

let shared: string;
let incoming: string;
let coordinator: TestCoordinator;
beforeEach(async () => {
  shared = mkdtempSync(join(tmpdir(), 'muster-data-'));
  incoming = join(shared, 'incoming');
  mkdirSync(incoming);
  coordinator = await startTestCoordinator({ watchDirs: [shared] });
});
afterEach(async () => {
  await coordinator.close();
  rmSync(shared, { recursive: true, force: true });
});

const file = { name: 'vision', params: { data: 'none' }, steps: { train: { run: 'train' } } };

function create(fields: object = {}): Promise<TriggerView> {
  const paramsJson = JSON.stringify({ data: '${trigger.directory}' });
  const wish = { name: 'arrived', specJson: JSON.stringify(file), directory: incoming, paramsJson };
  return coordinator.api.createTrigger({ ...wish, ...fields });
}

async function restart(): Promise<void> {
  const { nowMs } = coordinator.clock;
  const next = await startTestCoordinator({ memory: coordinator.memory, watchDirs: [shared] });
  await coordinator.close();
  coordinator = next;
  coordinator.clock.nowMs = nowMs;
}

const fires = async () => (await coordinator.api.getTrigger('arrived')).fires;
const runs = async () => (await coordinator.api.listPipelines()).runs;

/** Lets so much time pass, with a listing that has ended every 10 s. */
async function pass(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs <= ms; passedMs += 10_000) {
    coordinator.clock.nowMs += 10_000;
    await coordinator.triggers.run();
    await coordinator.triggers.listed();
    await coordinator.triggers.run();
  }
}

async function endRuns(): Promise<void> {
  for (const { id, state } of await runs())
    if (state === 'running') await coordinator.api.stopPipeline(id, '');
  await coordinator.pipelines.run();
}

test('new files start one run once they have stayed as they are, and what was there before starts none', async () => {
  writeFileSync(join(incoming, 'old.csv'), 'a');
  expect(await create()).toMatchObject({ kind: 'data', directory: incoming, overlap: 'queue' });
  await pass(2 * settledAfterMs);
  expect(await runs()).toEqual([]);
  writeFileSync(join(incoming, 'new.csv'), 'b');
  await pass(settledAfterMs - 10_000);
  expect(await runs()).toEqual([]);
  writeFileSync(join(incoming, 'new.csv'), 'b, and more');
  await pass(settledAfterMs - 10_000);
  expect(await runs()).toEqual([]);
  await pass(10_000);
  expect(await runs()).toMatchObject([{ trigger: 'arrived', params: { data: incoming } }]);
  expect(await fires()).toMatchObject([{ outcome: 'started', cause: `data in ${incoming}: 2 files` }]);
  await pass(2 * settledAfterMs);
  expect(await runs()).toHaveLength(1);
});

test('a coordinator that was killed starts no run twice, and finds what came meanwhile', async () => {
  await create();
  writeFileSync(join(incoming, 'one.csv'), 'a');
  await pass(settledAfterMs);
  await restart();
  await pass(2 * settledAfterMs);
  expect(await runs()).toHaveLength(1);
  await endRuns();
  writeFileSync(join(incoming, 'two.csv'), 'b');
  await restart();
  await pass(settledAfterMs);
  expect(await runs()).toHaveLength(2);
});

test('data that comes while a run has not ended starts another one afterwards', async () => {
  await create();
  writeFileSync(join(incoming, 'one.csv'), 'a');
  await pass(settledAfterMs);
  // Moved in as a whole, from the same file system.
  mkdirSync(join(shared, 'batch'));
  writeFileSync(join(shared, 'batch', 'two.csv'), 'b');
  renameSync(join(shared, 'batch'), join(incoming, 'batch'));
  await pass(settledAfterMs);
  expect((await fires()).map(({ outcome }) => outcome)).toEqual(['queued', 'started']);
  await endRuns();
  await coordinator.triggers.run();
  expect(await runs()).toHaveLength(2);
});

test('a paused trigger starts a run once it is resumed', async () => {
  await create();
  await coordinator.api.pauseTrigger('arrived');
  writeFileSync(join(incoming, 'one.csv'), 'a');
  await pass(2 * settledAfterMs);
  expect(await runs()).toEqual([]);
  await coordinator.api.resumeTrigger('arrived');
  await pass(settledAfterMs);
  expect(await runs()).toHaveLength(1);
});

test('a directory that has vanished starts nothing, and its return with the same files neither', async () => {
  writeFileSync(join(incoming, 'old.csv'), 'a');
  await create();
  renameSync(incoming, join(shared, 'away'));
  await pass(2 * settledAfterMs);
  renameSync(join(shared, 'away'), incoming);
  await pass(2 * settledAfterMs);
  expect(await fires()).toEqual([]);
});

describe('a directory that cannot be listed', () => {
  const blocked = async () => (await coordinator.api.getTrigger('arrived')).blocked;
  const changes = () =>
    [...coordinator.memory.events.values()]
      .filter(({ kind }) => kind === 'trigger.blocked' || kind === 'trigger.unblocked')
      .map(({ kind, data }) => ({ kind, data }));

  test('is told by the trigger and by one event, over a restart, until it can be listed again', async () => {
    await create();
    await pass(10_000);
    expect(await blocked()).toBeNull();
    renameSync(incoming, join(shared, 'away'));
    await pass(10_000);
    const since = await blocked();
    const cause = `"${incoming}" may not be watched, or is not there`;
    const remedy = `provide a directory of the coordinator's machine below ${shared}`;
    expect(since).toMatchObject({ cause, remedy });
    await restart();
    await pass(settledAfterMs);
    expect(await blocked()).toEqual(since);
    writeFileSync(incoming, '');
    await pass(10_000);
    expect(await blocked()).toMatchObject({
      cause: `"${incoming}" is not a directory`,
      sinceMs: since?.sinceMs,
    });
    expect(changes()).toMatchObject([
      { kind: 'trigger.blocked', data: { trigger: 'arrived', cause, remedy } },
    ]);
    rmSync(incoming);
    renameSync(join(shared, 'away'), incoming);
    await pass(10_000);
    expect(await blocked()).toBeNull();
    expect(changes()).toMatchObject([{ kind: 'trigger.blocked' }, { kind: 'trigger.unblocked' }]);
  });

  test('is not watched while the trigger is paused', async () => {
    await create();
    renameSync(incoming, join(shared, 'away'));
    await pass(10_000);
    expect(await blocked()).not.toBeNull();
    await coordinator.api.pauseTrigger('arrived');
    await pass(10_000);
    expect(await blocked()).toBeNull();
    await coordinator.api.resumeTrigger('arrived');
    await pass(10_000);
    expect(await blocked()).not.toBeNull();
  });

  test('has a remedy for what the file system refuses', () => {
    const refused = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    expect(listingProblemOf('/data/in', refused)).toEqual({
      cause: '"/data/in" cannot be listed: EACCES: permission denied',
      remedy:
        'let the user of the coordinator read it and the directories in it, such as by chmod -R a+rX /data/in',
    });
  });

  test('is one whose listing does not end, too', async () => {
    const watch = new DataWatch(
      {
        monotonicMs: () => nowMs,
        log: silentLogger,
        listData: () => new Promise(() => undefined),
      },
      () => undefined,
    );
    let nowMs = 0;
    await create();
    const [trigger] = coordinator.memory.pipelines.triggers.values();
    if (trigger === undefined) throw new Error('no trigger was stored');
    watch.newData(trigger);
    expect(watch.problem(trigger)).toBeUndefined();
    nowMs = listedWithinMs;
    expect(watch.problem(trigger)).toMatchObject({ cause: expect.stringContaining('within 5 minutes') });
  });
});

describe('refuses', () => {
  test('what may not be watched, by whatever path, and says no more of it', async () => {
    symlinkSync('/etc', join(shared, 'link'));
    const outside = ['/etc', '/nowhere', join(shared, 'link'), join(shared, '..'), join(shared, 'none')];
    for (const directory of outside)
      await expect(create({ directory })).rejects.toThrow(
        `directory: "${directory}" may not be watched, or is not there; expected a directory of the coordinator's machine below ${shared}`,
      );
    await expect(create({ directory: 'incoming' })).rejects.toThrow('directory: "incoming" is not absolute');
    writeFileSync(join(shared, 'file'), '');
    await expect(create({ directory: join(shared, 'file') })).rejects.toThrow('is not a directory');
    await expect(create({ cron: '0 3 * * *' })).rejects.toThrow('directory: given beside cron');
    await expect(create({ timeZone: 'UTC' })).rejects.toThrow('time_zone: given with a directory');
    await expect(listData(incoming, [])).rejects.toThrow(
      'expected a coordinator that is started with --watch-dir',
    );
  });

  test('more levels than it reads', async () => {
    mkdirSync(join(incoming, ...Array.from({ length: 40 }, () => 'deep')), { recursive: true });
    await expect(listData(incoming, [shared])).rejects.toThrow('has directories more than 32 deep');
  });
});

test('links and names that begin with a point are not data', async () => {
  const { digest } = await listData(incoming, [shared]);
  writeFileSync(join(incoming, '.part'), 'a');
  symlinkSync('/etc/passwd', join(incoming, 'link'));
  symlinkSync('/etc', join(incoming, 'directory'));
  expect(await listData(incoming, [shared])).toEqual({ digest, files: 0 });
});

test('directories that vanish while they are listed are no error', async () => {
  const names = Array.from({ length: 20 }, (_, index) => join(incoming, `d${index}`));
  // Later each time, so that some vanish between their names and their listing.
  for (let turns = 1; turns <= 30; turns += 1) {
    for (const name of names) mkdirSync(name);
    const listing = listData(incoming, [shared]);
    for (let turn = 0; turn < turns; turn += 1) await nextRound();
    for (const name of names) rmSync(name, { recursive: true });
    expect((await listing).files).toBe(0);
  }
});
