/** The real reader on a fake library that fails in every way a driver does. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nvmlFixture } from '../../../../../test/support/fakeNvml/nvmlFixture.ts';
import { waitFor } from '../../../../../test/support/services.ts';

const kindsOf = (problems: readonly { readonly kind: string; readonly gpuUuid: string | null }[]) =>
  problems.map(({ kind, gpuUuid }) => ({ kind, gpuUuid }));

test.for([
  { code: 15, kind: 'lost' },
  { code: 16, kind: 'reset_required' },
  { code: 28, kind: 'lost' },
])('code $code: the card is $kind, and the others go on', async ({ code, kind }) => {
  await using node = await nvmlFixture({ cards: 3 });
  const { fake, source } = node;
  await source.list();
  fake.behave('nvmlDeviceGetPowerUsage', 1, code);
  const { samples, problems } = await source.sample();
  expect(samples.map(({ uuid }) => uuid)).toEqual([fake.uuid(0), fake.uuid(2)]);
  expect(kindsOf(problems)).toEqual([{ kind, gpuUuid: fake.uuid(1) }]);
  expect(problems[0]).toMatchObject({
    pciBusId: '00000000:11:00.0',
    evidence: `nvmlDeviceGetPowerUsage returned ${code}`,
    message: expect.stringMatching(/^GPU 1 at 00000000:11:00\.0 /),
  });
});

test.for([
  { code: 9, kind: 'driver_not_loaded' },
  { code: 12, kind: 'driver_not_loaded' },
  { code: 18, kind: 'driver_mismatch' },
  { code: 4, kind: 'no_permission' },
  { code: 17, kind: 'no_permission' },
  { code: 999, kind: 'unknown_error' },
])('code $code of the driver itself is the problem $kind of the node, and heals', async ({ code, kind }) => {
  await using node = await nvmlFixture();
  const { fake, source } = node;
  fake.behave('nvmlInit_v2', null, code);
  const listing = await source.list();
  expect(listing.gpus).toEqual([]);
  expect(kindsOf(listing.problems)).toEqual([{ kind, gpuUuid: null }]);
  expect(kindsOf((await source.sample()).problems)).toEqual([{ kind, gpuUuid: null }]);
  fake.behave('nvmlInit_v2', null, 'answer');
  const healed = await waitFor('a good listing', () => source.list(), {
    until: ({ problems }) => problems.length === 0,
  });
  expect(healed.gpus).toHaveLength(2);
});

test('a driver that is replaced under a running reader is a problem of the node; its GPUs stay listed', async () => {
  await using node = await nvmlFixture({ deadlines: { restartMs: 1_000, restartMaxMs: 1_000 } });
  const { fake, source } = node;
  await source.list();
  fake.behaveAll(0, 18);
  const { samples, problems } = await source.sample();
  expect({ samples, kinds: kindsOf(problems) }).toEqual({
    samples: [],
    kinds: [{ kind: 'driver_mismatch', gpuUuid: null }],
  });
  // Until it is time for the next try, the answer is the same.
  const listing = await source.list();
  expect(listing.gpus).toHaveLength(2);
  expect(kindsOf(listing.problems)).toEqual([{ kind: 'driver_mismatch', gpuUuid: null }]);

  fake.behaveAll(0, 'answer');
  expect((await source.sample()).samples).toEqual([]);
  node.advanceClock(1_000);
  expect((await source.sample()).samples).toHaveLength(2);
});

test('an unknown error is reported when it stays, and costs only the value', async () => {
  await using node = await nvmlFixture();
  const { fake, source } = node;
  await source.list();
  fake.behave('nvmlDeviceGetPowerUsage', 0, 999);
  expect((await source.sample()).problems).toEqual([]);
  expect((await source.sample()).problems).toEqual([]);
  const third = await source.sample();
  expect(kindsOf(third.problems)).toEqual([{ kind: 'unknown_error', gpuUuid: fake.uuid(0) }]);
  expect(third.samples[0]).toMatchObject({ powerWatts: null, temperature: 61 });
  fake.behave('nvmlDeviceGetPowerUsage', 0, 'answer');
  expect((await source.sample()).problems).toEqual([]);
});

test('a value that may not be read is null, and what is reported asks for that right', async () => {
  await using node = await nvmlFixture();
  const { fake, source } = node;
  fake.behave('nvmlDeviceGetComputeRunningProcesses_v3', 0, 4);
  const { samples, problems } = await source.sample();
  expect(samples[0]).toMatchObject({ processes: null, temperature: 61 });
  const forbidden = [{ kind: 'no_permission', gpuUuid: fake.uuid(0) }];
  expect(kindsOf(problems)).toEqual(forbidden);
  // It is not tried again at every sample, and yet it is not over.
  for (let sample = 2; sample <= 11; sample += 1) {
    expect(kindsOf((await source.sample()).problems)).toEqual(forbidden);
  }
});

test('a card that hangs is named and left alone; the others are read on', async () => {
  await using node = await nvmlFixture({ cards: 3, deadlines: { sampleMs: 2_000 } });
  const { fake, source } = node;
  await source.list();
  const stuckPid = source.readerPid;
  fake.behave('nvmlDeviceGetTotalEnergyConsumption', 1, 'hang');
  const hung = await source.sample();
  expect(hung.samples).toEqual([]);
  expect(kindsOf(hung.problems)).toEqual([{ kind: 'hung', gpuUuid: fake.uuid(1) }]);
  expect(hung.problems[0]?.evidence).toBe(
    'no answer from nvmlDeviceGetTotalEnergyConsumption within 2000 ms',
  );

  const next = await source.sample();
  expect(source.readerPid).not.toBe(stuckPid);
  expect(next.samples.map(({ uuid }) => uuid)).toEqual([fake.uuid(0), fake.uuid(2)]);
  expect(kindsOf(next.problems)).toEqual([{ kind: 'hung', gpuUuid: fake.uuid(1) }]);
  // Nothing says that it is gone: it stays listed, with its links.
  const { gpus, links } = await source.list();
  expect(gpus.map(({ uuid }) => uuid)).toEqual([fake.uuid(0), fake.uuid(1), fake.uuid(2)]);
  expect(links).toHaveLength(3);

  // After a while it is tried again, and then again after a longer one.
  node.advanceClock(60_000);
  expect(kindsOf((await source.sample()).problems)).toEqual([{ kind: 'hung', gpuUuid: fake.uuid(1) }]);
  fake.behave('nvmlDeviceGetTotalEnergyConsumption', 1, 'answer');
  expect((await source.sample()).samples).toHaveLength(2);
  node.advanceClock(60_000);
  const healed = await source.sample();
  expect({ count: healed.samples.length, problems: healed.problems }).toEqual({ count: 3, problems: [] });
});

test('a listing finds the cards that hang and lists the others', async () => {
  await using node = await nvmlFixture({ cards: 3, deadlines: { listMs: 15_000 } });
  const { fake, source } = node;
  fake.behave('nvmlDeviceGetUUID', 1, 'hang');
  const { gpus, problems } = await source.list();
  expect(gpus.map(({ uuid }) => uuid)).toEqual([fake.uuid(0), fake.uuid(2)]);
  expect(problems).toEqual([
    expect.objectContaining({ kind: 'hung', gpuUuid: null, message: expect.stringMatching(/^GPU 1 /) }),
  ]);
});

test('a driver that hangs at the start is a problem of the node', async () => {
  await using node = await nvmlFixture({ deadlines: { listMs: 1_500 } });
  const { fake, source } = node;
  fake.behave('nvmlInit_v2', null, 'hang');
  const { gpus, problems } = await source.list();
  expect({ gpus, kinds: kindsOf(problems) }).toEqual({ gpus: [], kinds: [{ kind: 'hung', gpuUuid: null }] });
  expect(source.readerPid).toBeNull();
});

test('a card that makes the library crash is named and left alone', async () => {
  await using node = await nvmlFixture();
  const { fake, source } = node;
  await source.list();
  fake.behave('nvmlDeviceGetClockInfo', 0, 'crash');
  const crashed = await source.sample();
  expect(kindsOf(crashed.problems)).toEqual([{ kind: 'unknown_error', gpuUuid: fake.uuid(0) }]);
  expect(crashed.problems[0]?.evidence).toMatch(/signal SIGABRT.*nvmlDeviceGetClockInfo$/);
  expect((await source.sample()).samples.map(({ uuid }) => uuid)).toEqual([fake.uuid(1)]);
});

test('a reader that is killed between samples is replaced', async () => {
  await using node = await nvmlFixture();
  const { source } = node;
  await source.list();
  const pid = source.readerPid;
  expect(pid).not.toBeNull();
  process.kill(pid ?? 0, 'SIGKILL');
  await waitFor('the reader is gone', () => source.readerPid === null);
  const { samples, problems } = await source.sample();
  expect({ count: samples.length, problems }).toEqual({ count: 2, problems: [] });
});

test('a card that disappears is reported, and is back when the driver has it again', async () => {
  await using node = await nvmlFixture({ cards: 3 });
  const { fake, source } = node;
  expect((await source.list()).gpus).toHaveLength(3);
  fake.set(1, { present: 0 });
  expect(kindsOf((await source.sample()).problems)).toEqual([{ kind: 'lost', gpuUuid: fake.uuid(1) }]);

  const without = await source.list();
  expect(without.gpus.map(({ uuid }) => uuid)).toEqual([fake.uuid(0), fake.uuid(2)]);
  expect(kindsOf(without.problems)).toEqual([{ kind: 'lost', gpuUuid: fake.uuid(1) }]);
  expect(kindsOf((await source.sample()).problems)).toEqual([{ kind: 'lost', gpuUuid: fake.uuid(1) }]);

  fake.set(1, { present: 1 });
  const again = await source.list();
  expect({ count: again.gpus.length, problems: again.problems }).toEqual({ count: 3, problems: [] });
  expect((await source.sample()).samples).toHaveLength(3);
});

test('a card that is counted and does not open is known by what it was', async () => {
  await using node = await nvmlFixture({ cards: 2 });
  const { fake, source } = node;
  await source.list();
  fake.behave('nvmlDeviceGetHandleByIndex_v2', 1, 999);
  const { gpus, problems } = await source.list();
  expect(gpus.map(({ uuid }) => uuid)).toEqual([fake.uuid(0)]);
  expect(kindsOf(problems)).toEqual([{ kind: 'unknown_error', gpuUuid: fake.uuid(1) }]);
});

test('a library that is not there is an error with its name', async () => {
  await using node = await nvmlFixture({ library: 'libnvidia-ml-nowhere.so.1' });
  await expect(node.source.list()).rejects.toThrow(
    /^libnvidia-ml-nowhere\.so\.1 cannot be loaded on this node: /,
  );
});

test('a file that is no library is an error with its name', async () => {
  await using node = await nvmlFixture({ library: '/etc/hostname' });
  await expect(node.source.list()).rejects.toThrow(/^\/etc\/hostname cannot be loaded on this node: /);
});

test('nothing is left when the source is closed, not even a reader that hangs', async () => {
  await using node = await nvmlFixture({ deadlines: { sampleMs: 60_000 } });
  const { fake, source } = node;
  await source.list();
  const pid = source.readerPid;
  fake.behave('nvmlDeviceGetPowerUsage', 0, 'hang');
  const sampling = source.sample();
  await source.close();
  await expect(sampling).resolves.toMatchObject({ samples: [] });
  expect(readdirSync('/proc').includes(`${pid}`) && isReader(pid)).toBe(false);
  await expect(source.list()).rejects.toThrow('closed');
});

function isReader(pid: number | null): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('nvml');
}
