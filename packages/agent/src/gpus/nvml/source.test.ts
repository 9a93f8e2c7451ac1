/** The real reader on a fake library: what a healthy node gives. */
import { describe, expect, test } from 'vitest';
import { nvmlFixture, sampleIn } from '../../../../../test/support/fakeNvml/nvmlFixture.ts';
import { waitFor } from '../../../../../test/support/services.ts';
import type { XidEvent } from '../gpuSource.ts';

describe('listing', () => {
  test('names every card with its place in the machine', async () => {
    await using node = await nvmlFixture({ cards: 2 });
    const { fake, source } = node;
    fake.set(1, { cpuFirst: 64, cpuLast: 95 });
    const listing = await source.list();
    expect(listing.driverVersion).toBe('590.20.1');
    expect(listing.cudaVersion).toBe('13.1');
    expect(listing.problems).toEqual([]);
    expect(listing.gpus).toEqual([
      {
        uuid: fake.uuid(0),
        model: 'Fake H100',
        memoryMb: 81_559,
        simulated: false,
        index: 0,
        pciBusId: '00000000:10:00.0',
        numaNode: 0,
        cpuAffinity: '0-31',
        serial: '1320000000000',
        mig: null,
      },
      expect.objectContaining({
        uuid: fake.uuid(1),
        index: 1,
        pciBusId: '00000000:11:00.0',
        numaNode: 1,
        cpuAffinity: '64-95',
      }),
    ]);
  });

  test('cards behind switches are linked by all of their NVLinks', async () => {
    await using node = await nvmlFixture({ cards: 3 });
    node.fake.setAll({ switchLinks: 18 });
    const { links } = await node.source.list();
    const uuid = node.fake.uuid;
    expect(links).toEqual([
      { from: uuid(0), to: uuid(1), kind: 'NV18' },
      { from: uuid(0), to: uuid(2), kind: 'NV18' },
      { from: uuid(1), to: uuid(2), kind: 'NV18' },
    ]);
  });

  test('bridged pairs count their links; the others are as far as PCIe says', async () => {
    await using node = await nvmlFixture({ cards: 4 });
    node.fake.set(0, { pairLinks: 4 });
    node.fake.set(1, { pairLinks: 4 });
    const { links } = await node.source.list();
    const kindOf = (one: number, other: number) =>
      links.find(({ from, to }) => from === node.fake.uuid(one) && to === node.fake.uuid(other))?.kind;
    expect(links).toHaveLength(6);
    expect(kindOf(0, 1)).toBe('NV4');
    expect(kindOf(2, 3)).toBe('PIX');
    expect(kindOf(0, 2)).toBe('SYS');
  });

  test('a card in MIG mode is its instances, whatever slots they lie in', async () => {
    await using node = await nvmlFixture({ cards: 2, gpm: true });
    const { fake, source } = node;
    fake.set(1, { migMode: 1, migSlots: 0b100101, gpmSupported: 1, gpmPercent: 25, gpmMebibytes: 100 });
    const { gpus } = await source.list();
    expect(gpus.map(({ uuid }) => uuid)).toEqual([
      fake.uuid(0),
      fake.migUuid(1, 0),
      fake.migUuid(1, 2),
      fake.migUuid(1, 5),
    ]);
    expect(gpus[2]).toMatchObject({
      model: 'Fake H100',
      memoryMb: Math.floor(81_559 / 8),
      mig: { parentUuid: fake.uuid(1), profile: '1g.10gb', gpuInstanceId: 9, computeInstanceId: 0 },
    });
    await source.sample();
    // Samples of GPM must lie a tenth of a second apart.
    const sample = await waitFor('activity of an instance', () => node.sampleOf(fake.migUuid(1, 2)), {
      until: ({ activity }) => activity !== null,
    });
    expect(sample).toMatchObject({
      utilization: null,
      memoryTotalMb: Math.floor(81_559 / 8),
      temperature: 61,
      rows: null,
      // The card's, and so not the instance's.
      powerWatts: null,
      energyMillijoules: null,
    });
    expect(sample.activity?.smActive).toBeCloseTo(0.2502);
  });
});

describe('sampling', () => {
  test('gives every value the card has, and null for the others', async () => {
    await using node = await nvmlFixture();
    const { fake } = node;
    fake.set(0, { switchLinks: 2, processCount: 40, processPid: process.pid, processMemoryMb: 512 });
    const sample = await node.sampleOf(fake.uuid(0));
    expect(sample).toEqual({
      uuid: fake.uuid(0),
      utilization: 87,
      memoryUtilization: 43,
      encoderUtilization: 0,
      decoderUtilization: 0,
      memoryTotalMb: 81_559,
      memoryUsedMb: 40_000,
      memoryFreeMb: 41_000,
      memoryReservedMb: 559,
      temperature: 61,
      memoryTemperature: 72,
      powerWatts: 512.345,
      powerLimitWatts: 700,
      energyMillijoules: 9_876_543_210,
      smClockMhz: 1980,
      memoryClockMhz: 2619,
      clockEventReasons: 0x4,
      pcieReplays: 3,
      nvlinkErrors: { replay: 0, recovery: 2, crc: 4 },
      ecc: {
        correctedVolatile: 1,
        uncorrectedVolatile: 0,
        correctedAggregate: 5,
        uncorrectedAggregate: 2,
        sramThresholdExceeded: false,
      },
      rows: { correctable: 1, uncorrectable: 2, pending: true, failed: false },
      retiredPages: null,
      recoveryAction: 0,
      activity: null,
      // More than there was room for at first.
      processes: Array.from({ length: 40 }, () => ({ pid: process.pid, memoryMb: 512 })),
    });
  });

  test('what a card does not have is null, never 0', async () => {
    await using node = await nvmlFixture();
    const { fake } = node;
    fake.set(0, {
      utilization: null,
      encoderUtilization: null,
      temperature: 0,
      memoryTemperature: null,
      powerMilliwatts: null,
      energyMillijoules: null,
      smClockMhz: null,
      pcieReplays: null,
      recoveryAction: null,
      processCount: 1,
      processPid: 0x7fffffff,
    });
    expect(await node.sampleOf(fake.uuid(0))).toMatchObject({
      utilization: null,
      encoderUtilization: null,
      // A virtual machine's share of a GPU reports 0 °C where it has no sensor.
      temperature: null,
      memoryTemperature: null,
      powerWatts: null,
      energyMillijoules: null,
      smClockMhz: null,
      pcieReplays: null,
      recoveryAction: null,
      nvlinkErrors: null,
      // A process that does not exist here: another pid namespace, or entries of another size.
      processes: null,
    });
  });

  test('dear values are read at each tenth sample and reported at every one', async () => {
    await using node = await nvmlFixture({ cards: 1 });
    const { fake } = node;
    expect((await node.sampleOf(fake.uuid(0))).ecc?.correctedAggregate).toBe(5);
    fake.set(0, { eccCorrectedAggregate: 6, utilization: 12 });
    for (let sample = 2; sample <= 10; sample += 1) {
      const { ecc, utilization } = await node.sampleOf(fake.uuid(0));
      expect({ sample, utilization, corrected: ecc?.correctedAggregate }).toEqual({
        sample,
        utilization: 12,
        corrected: 5,
      });
    }
    expect((await node.sampleOf(fake.uuid(0))).ecc?.correctedAggregate).toBe(6);
  });

  test('errors of the NVLinks are read one counter at a time', async () => {
    await using node = await nvmlFixture({ cards: 1 });
    const { fake } = node;
    fake.set(0, { switchLinks: 2 });
    await node.source.sample();
    fake.set(0, { linkReplays: 10, linkRecoveries: 20, linkCrcErrors: 30 });
    const seen = new Set<string>();
    for (let sample = 0; sample < 30; sample += 1) {
      seen.add(JSON.stringify((await node.sampleOf(fake.uuid(0))).nvlinkErrors));
    }
    expect([...seen].map((text) => JSON.parse(text) as unknown)).toEqual([
      { replay: 0, recovery: 2, crc: 4 },
      { replay: 0, recovery: 40, crc: 4 },
      { replay: 0, recovery: 40, crc: 60 },
      { replay: 20, recovery: 40, crc: 60 },
    ]);
  });

  test('counters of the buses become rates between two samples', async () => {
    await using node = await nvmlFixture();
    const { fake } = node;
    fake.set(0, {
      pcieTxBytes: 5_000,
      pcieRxBytes: 0,
      nvlinkTxKib: 10,
      nvlinkRxKib: 10,
      counterMicros: 1_000_000,
    });
    expect((await node.sampleOf(fake.uuid(0))).activity).toBeNull();
    fake.set(0, {
      pcieTxBytes: 9_000,
      pcieRxBytes: 500,
      nvlinkTxKib: 12,
      nvlinkRxKib: 9,
      counterMicros: 3_000_000,
    });
    expect((await node.sampleOf(fake.uuid(0))).activity).toMatchObject({
      pcieTxBytes: 2_000,
      pcieRxBytes: 250,
      nvlinkTxBytes: 1_024,
      // It went back: started over, nobody knows when.
      nvlinkRxBytes: null,
      smActive: null,
    });
    // 32 bits: wrapped nobody knows how often.
    fake.set(0, { counterType: 1, counterMicros: 4_000_000 });
    await node.source.sample();
    fake.set(0, { pcieTxBytes: 10_000, counterMicros: 5_000_000 });
    expect((await node.sampleOf(fake.uuid(0))).activity).toBeNull();
  });

  test('GPM measures activity between one sample and the next', async () => {
    await using node = await nvmlFixture({ gpm: true });
    const { fake, source } = node;
    fake.set(0, { gpmSupported: 1, gpmPercent: 50, gpmMebibytes: 1_000 });
    await source.list();
    expect(source.profilingSource).toBe('gpm');
    expect((await node.sampleOf(fake.uuid(0))).activity).toBeNull();
    const { activity } = await waitFor('activity', () => node.sampleOf(fake.uuid(0)), {
      until: (sample) => sample.activity !== null,
    });
    // The fake adds the number of the metric, so that a mix-up shows.
    expect(activity?.graphicsActive).toBeCloseTo(0.5001);
    expect(activity?.smOccupancy).toBeCloseTo(0.5003);
    expect(activity?.tensorActive).toBeCloseTo(0.5005);
    expect(activity?.dramActive).toBeCloseTo(0.501);
    expect(activity?.fp16Active).toBeCloseTo(0.5013);
    expect(activity?.pcieTxBytes).toBe(1_020 * 1024 * 1024);
    expect(activity?.nvlinkRxBytes).toBe(1_060 * 1024 * 1024);
    expect((await node.sampleOf(fake.uuid(1))).activity).toBeNull();
    // A listing in between changes nothing for a card that stayed as it was.
    await source.list();
    expect((await node.sampleOf(fake.uuid(0))).activity?.tensorActive).toBeCloseTo(0.5005);
  });

  test('a library without newer functions gives what it can by its older ones', async () => {
    await using node = await nvmlFixture({
      without: [
        'nvmlDeviceGetMemoryInfo_v2',
        'nvmlDeviceGetTemperatureV',
        'nvmlDeviceGetCurrentClocksEventReasons',
        'nvmlDeviceGetFieldValues',
        'nvmlDeviceGetSramEccErrorStatus',
        'nvmlDeviceGetComputeRunningProcesses_v3',
        'nvmlGpmQueryDeviceSupport',
        'nvmlEventSetWait_v2',
        'nvmlDeviceGetMigMode',
      ],
      gpm: true,
    });
    const { fake, source } = node;
    const { gpus, problems } = await source.list();
    expect({ count: gpus.length, problems }).toEqual({ count: 2, problems: [] });
    const sampling = await source.sample();
    expect(sampling.problems).toEqual([]);
    expect(sampleIn(sampling, fake.uuid(0))).toMatchObject({
      // With what the driver reserves: the older function cannot tell it apart.
      memoryUsedMb: 40_559,
      memoryReservedMb: null,
      temperature: 61,
      clockEventReasons: 4,
      memoryTemperature: null,
      recoveryAction: null,
      ecc: { sramThresholdExceeded: null, correctedAggregate: 5 },
      processes: null,
    });
  });
});

test('Xids come as the driver announces them', async () => {
  await using node = await nvmlFixture();
  const { fake, source } = node;
  const seen: XidEvent[] = [];
  source.onXid?.((event) => seen.push(event));
  await source.list();
  fake.announceXid(1, 79);
  await waitFor('the first Xid', () => seen.length === 1);
  fake.announceXid(0, 31);
  await waitFor('the second Xid', () => seen.length === 2);
  expect(seen).toEqual([
    { gpuUuid: fake.uuid(1), xid: 79 },
    { gpuUuid: fake.uuid(0), xid: 31 },
  ]);
});

test('a card in MIG mode without instances is reported, and is no fault', async () => {
  await using node = await nvmlFixture({ cards: 2 });
  node.fake.set(0, { migMode: 1, migSlots: 0 });
  const { gpus, problems } = await node.source.list();
  expect(gpus).toMatchObject([{ uuid: node.fake.uuid(1) }]);
  expect(problems).toMatchObject([{ kind: 'no_instances', gpuUuid: node.fake.uuid(0) }]);
  expect((await node.source.sample()).problems).toEqual([]);
});
