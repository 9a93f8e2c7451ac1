import { describe, expect, test } from 'vitest';
import { capture, captureJson, hasCaptures } from './testing/captures.ts';
import {
  aCardXml,
  aLogXml,
  lostCard,
  migCard,
  newCard,
  oldCard,
  resetCard,
  vgpuGuest,
} from './testing/xmlTexts.ts';
import { parseSmiXml, problemsOfCard, type SmiLog, type XmlCard } from './xml.ts';
import { sampleOfCard, sampleOfMigDevice } from './xmlSample.ts';

function read(text: string): SmiLog {
  const log = parseSmiXml(text);
  if (log === null) throw new Error('not read');
  return log;
}

function onlyCard(text: string): XmlCard {
  const [card] = read(aLogXml([text])).cards;
  if (card === undefined) throw new Error('no card');
  return card;
}

test('what the card is', () => {
  const log = read(aLogXml([newCard]));
  expect([log.driverVersion, log.cudaVersion, log.attachedGpus]).toEqual(['550.10.02', '12.4', 1]);
  expect(log.cards[0]).toMatchObject({
    uuid: 'GPU-0e300000-0000-4000-8000-000000000001',
    pciBusId: '00000000:3b:00.0',
    model: 'NVIDIA Test 40GB',
    memoryMb: 40_960,
    serial: '1322000000001',
    isVgpuGuest: false,
    migEnabled: false,
    migDevices: [],
  });
});

test('the document type does not matter', () => {
  const cards = [null, 10, 11, 12, 13].map((dtd) => read(aLogXml([oldCard, newCard], dtd)).cards.length);
  expect(cards).toEqual([2, 2, 2, 2, 2]);
});

test('a sample of an older generation', () => {
  expect(sampleOfCard(onlyCard(oldCard), 'GPU-x')).toMatchObject({
    utilization: 55,
    memoryUtilization: 20,
    encoderUtilization: null,
    memoryUsedMb: 1200,
    temperature: 66,
    memoryTemperature: null,
    powerWatts: 201.5,
    powerLimitWatts: 250,
    clockEventReasons: 0x88,
    pcieReplays: 4,
    ecc: { correctedVolatile: 2, uncorrectedVolatile: 0, correctedAggregate: 9, uncorrectedAggregate: 1 },
    rows: null,
    retiredPages: { singleBit: 3, doubleBit: 1, pending: true },
    recoveryAction: null,
    processes: [{ pid: 4711, memoryMb: 1100 }],
  });
});

test('a sample of a newer generation', () => {
  expect(sampleOfCard(onlyCard(newCard), 'GPU-x')).toMatchObject({
    powerWatts: 640.1,
    powerLimitWatts: 700,
    clockEventReasons: 0x4,
    ecc: {
      correctedVolatile: 5,
      uncorrectedVolatile: 10,
      // One of its parts is absent.
      correctedAggregate: null,
      uncorrectedAggregate: null,
      sramThresholdExceeded: true,
    },
    rows: { correctable: 1, uncorrectable: 2, pending: true, failed: false },
    retiredPages: null,
    recoveryAction: 4,
    processes: [],
  });
});

test('a virtual GPU has no temperature and no clocks, whatever it says', () => {
  const card = onlyCard(vgpuGuest);
  expect(card.isVgpuGuest).toBe(true);
  expect(sampleOfCard(card, 'GPU-x')).toMatchObject({
    utilization: 0,
    temperature: null,
    powerWatts: null,
    smClockMhz: null,
    memoryClockMhz: null,
    processes: null,
  });
});

test('a lost card, and one that needs a reset', () => {
  expect(problemsOfCard(onlyCard(lostCard))).toMatchObject([
    { kind: 'lost', gpuUuid: 'GPU-10570000-0000-4000-8000-000000000001', pciBusId: '00000000:3b:00.0' },
  ]);
  const reset = onlyCard(resetCard);
  expect(problemsOfCard(reset)).toMatchObject([{ kind: 'reset_required' }]);
  expect(sampleOfCard(reset, 'GPU-x').recoveryAction).toBe(1);
  expect([newCard, oldCard, vgpuGuest, migCard].flatMap((card) => problemsOfCard(onlyCard(card)))).toEqual(
    [],
  );
});

test('only a failing sensor is a fault of the card, not a setting that cannot be read', () => {
  const setting = aCardXml('GPU-a', '<addressing_mode>Unknown Error</addressing_mode>');
  const sensor = aCardXml('GPU-a', '<temperature><gpu_temp>Unknown Error</gpu_temp></temperature>');
  expect(problemsOfCard(onlyCard(setting))).toEqual([]);
  expect(problemsOfCard(onlyCard(sensor))).toMatchObject([
    { kind: 'unknown_error', evidence: 'gpu_temp: Unknown Error' },
  ]);
});

test('instances of a card in MIG mode have memory and processes of their own, and no power', () => {
  const card = onlyCard(migCard);
  expect(
    card.migDevices.map(({ index, gpuInstanceId, uuid, memoryMb }) => [index, gpuInstanceId, uuid, memoryMb]),
  ).toEqual([
    [0, 2, null, 19_968],
    [1, 9, null, 4864],
  ]);
  const [first, second] = card.migDevices.map((device) =>
    sampleOfMigDevice(card, device, `MIG-${device.index}`),
  );
  expect(first).toMatchObject({
    uuid: 'MIG-0',
    utilization: null,
    memoryTotalMb: 19_968,
    memoryUsedMb: 512,
    temperature: 41,
    powerWatts: null,
    processes: [{ pid: 99, memoryMb: 500 }],
  });
  expect(second).toMatchObject({ memoryUsedMb: 3, processes: [] });
});

const whole = aLogXml([newCard]);
test.each([
  ['nothing', ''],
  ['a plain text', 'No devices were found'],
  ['a document cut short', whole.slice(0, whole.length / 2)],
  ['one that lost its middle', `${whole.slice(0, 900)}</nvidia_smi_log>`],
  ['another document', '<html></html>'],
  ['nesting without end', `${'<a>'.repeat(10_000)}</nvidia_smi_log>`],
  ['deep nesting', `<nvidia_smi_log>${'<a>'.repeat(5000)}${'</a>'.repeat(5000)}</nvidia_smi_log>`],
  ['a reserved name', '<nvidia_smi_log><__proto__><x>1</x></__proto__></nvidia_smi_log>'],
  ['binary garbage', `<\u0000\u0001\uFFFD${'\u0002'.repeat(1000)}</nvidia_smi_log>`],
])('%s is not read', (_, text) => {
  expect(parseSmiXml(text)).toBeNull();
});

test('a warning behind the document does not hide the cards', () => {
  const warning = 'WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n';
  expect(parseSmiXml(`${whole}\n${warning}`)).toEqual(parseSmiXml(whole));
  expect(parseSmiXml(whole)?.cards).toHaveLength(1);
});

test('errors of the memory that is shown count where the other part is not shown, and 0 of one part is not 0', () => {
  const counts = (sram: string, dram: string) => {
    const ecc = `<ecc_errors><volatile><sram_uncorrectable>${sram}</sram_uncorrectable>
<dram_uncorrectable>${dram}</dram_uncorrectable></volatile></ecc_errors>`;
    const text = `<nvidia_smi_log><gpu id="0"><uuid>GPU-a</uuid>${ecc}</gpu></nvidia_smi_log>`;
    const [card] = parseSmiXml(text)?.cards ?? [];
    return card === undefined ? undefined : sampleOfCard(card, 'GPU-a').ecc?.uncorrectedVolatile;
  };
  expect(counts('N/A', '5')).toBe(5);
  expect(counts('3', 'N/A')).toBe(3);
  expect(counts('3', '5')).toBe(8);
  expect(counts('0', '0')).toBe(0);
  expect([counts('N/A', '0') ?? null, counts('N/A', 'N/A') ?? null]).toEqual([null, null]);
});

test('entities are not expanded', () => {
  const text = `<!DOCTYPE nvidia_smi_log [<!ENTITY v "550.1">]>
<nvidia_smi_log><driver_version>&v;</driver_version></nvidia_smi_log>`;
  expect(parseSmiXml(text)?.driverVersion ?? null).not.toBe('550.1');
});

test('elements of another kind than expected are absent', () => {
  const text = `<nvidia_smi_log><driver_version><x>1</x></driver_version><attached_gpus>-1</attached_gpus>
<cuda_version>ERR!</cuda_version>
<gpu id="nowhere"><uuid>GPU-a</uuid><uuid>GPU-b</uuid><fb_memory_usage>N/A</fb_memory_usage><pci>N/A</pci></gpu>
<gpu></gpu></nvidia_smi_log>`;
  expect(parseSmiXml(text)).toMatchObject({
    driverVersion: null,
    cudaVersion: null,
    attachedGpus: null,
    cards: [{ uuid: null, pciBusId: null, model: '', memoryMb: null, serial: null }],
  });
});

interface CapturedLog {
  readonly driver: string | null;
  readonly attached: number | null;
  readonly gpus: readonly {
    readonly product: string;
    readonly uuid: string;
    readonly pci: string;
    readonly memory_total_mib: number | null;
    readonly memory_used_mib: number | null;
    readonly gpu_util_percent: number | null;
    readonly temp_c: number | null;
    readonly power_w_instant_first: number | null;
    readonly mig: string | null;
    readonly mig_devices: readonly {
      readonly gi: number;
      readonly ci: number;
      readonly memory_total_mib: number;
    }[];
    readonly remap_pending: string | null;
    readonly recovery_action: string | null;
    readonly lost: boolean;
  }[];
}

describe.runIf(hasCaptures)('captured documents', () => {
  const captured = hasCaptures
    ? (captureJson('smi-xml', 'expected.json') as Record<string, CapturedLog>)
    : {};

  test.each(Object.entries(captured))('%s', (file, expected) => {
    const text = capture('smi-xml', file);
    const log = read(text);
    expect([log.driverVersion, log.attachedGpus]).toEqual([expected.driver, expected.attached]);
    expect(log.cards).toHaveLength(expected.gpus.length);
    // Of a card with both readings we take the average, as `power.draw` does.
    const averages = [...text.matchAll(/<average_power_draw>([\d.]+) W</g)].map((match) => Number(match[1]));
    for (const [index, gpu] of expected.gpus.entries()) {
      const card = log.cards[index];
      if (card === undefined) throw new Error('no card');
      expect(card).toMatchObject({
        model: gpu.product,
        uuid: gpu.uuid,
        pciBusId: `0000${gpu.pci}`.slice(-16).toLowerCase(),
        memoryMb: gpu.memory_total_mib,
        migEnabled: gpu.mig === 'Enabled',
      });
      expect(
        card.migDevices.map(({ gpuInstanceId, computeInstanceId, memoryMb }) => [
          gpuInstanceId,
          computeInstanceId,
          memoryMb,
        ]),
      ).toEqual(gpu.mig_devices.map(({ gi, ci, memory_total_mib }) => [gi, ci, memory_total_mib]));
      expect(problemsOfCard(card).some(({ kind }) => kind === 'lost')).toBe(gpu.lost);
      const sample = sampleOfCard(card, gpu.uuid);
      expect(sample).toMatchObject({
        memoryTotalMb: gpu.memory_total_mib,
        memoryUsedMb: gpu.memory_used_mib,
        utilization: gpu.gpu_util_percent,
        temperature: card.isVgpuGuest && gpu.temp_c === 0 ? null : gpu.temp_c,
        recoveryAction: gpu.recovery_action === 'None' ? 0 : null,
      });
      expect(sample.rows?.pending ?? null).toBe(
        gpu.remap_pending === null ? null : gpu.remap_pending === 'Yes',
      );
      expect([gpu.power_w_instant_first, ...averages]).toContain(sample.powerWatts);
    }
  });

  test('every capture, cut anywhere, is not read', () => {
    for (const file of Object.keys(captured)) {
      const text = capture('smi-xml', file).trimEnd();
      for (const part of [0.01, 0.3, 0.7, 0.99]) {
        expect(parseSmiXml(text.slice(0, Math.floor(text.length * part)))).toBeNull();
      }
    }
  });
});
