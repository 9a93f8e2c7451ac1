import { describe, expect, test } from 'vitest';
import { emptySample } from '../gpus/gpuSource.ts';
import { type GpuPageParts, gpuFamilies } from './gpuPage.ts';
import { aCard, anInstance, anObservation, aSample, aTask, gpuParts } from './testing/parts.ts';
import { renderFamilies } from './textFormat.ts';

const render = (parts: GpuPageParts) => renderFamilies(gpuFamilies(parts));
const seriesOf = (page: string, name: string) =>
  page.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
const namesOf = (page: string) => [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);

describe('a card', () => {
  const card = aCard(0);
  const page = render(gpuParts(anObservation([card])));
  const labels =
    'gpu="0",UUID="GPU-10000000-aaaa-bbbb-cccc-000000000000",pci_bus_id="00000000:0B:00.0",device="nvidia0",' +
    'modelName="Some GPU 80GB",Hostname="node-1",DCGM_FI_DRIVER_VERSION="580.1.2"';

  test('has the labels of dcgm-exporter in its order', () => {
    expect(seriesOf(page, 'DCGM_FI_DEV_GPU_UTIL')).toEqual([`DCGM_FI_DEV_GPU_UTIL{${labels}} 97`]);
  });

  test.each([
    ['DEV_SM_CLOCK', '1980'],
    ['DEV_MEM_CLOCK', '2619'],
    ['DEV_MEMORY_TEMP', '78'],
    ['DEV_GPU_TEMP', '61'],
    ['DEV_POWER_USAGE', '612.500000'],
    ['DEV_TOTAL_ENERGY_CONSUMPTION', '98765432100'],
    ['DEV_PCIE_REPLAY_COUNTER', '3'],
    ['DEV_MEM_COPY_UTIL', '41'],
    ['DEV_ENC_UTIL', '0'],
    ['DEV_DEC_UTIL', '1'],
    ['DEV_FB_FREE', '6700'],
    ['DEV_FB_USED', '74211'],
    ['DEV_FB_RESERVED', '648'],
    ['DEV_FB_TOTAL', '81559'],
    ['DEV_ENFORCED_POWER_LIMIT', '700.000000'],
    ['DEV_CLOCKS_EVENT_REASONS', '4'],
    ['DEV_UNCORRECTABLE_REMAPPED_ROWS', '13'],
    ['DEV_CORRECTABLE_REMAPPED_ROWS', '12'],
    ['DEV_ROW_REMAP_FAILURE', '0'],
    ['DEV_ROW_REMAP_PENDING', '1'],
    ['DEV_ECC_SBE_VOL_TOTAL', '8'],
    ['DEV_ECC_DBE_VOL_TOTAL', '9'],
    ['DEV_ECC_SBE_AGG_TOTAL', '10'],
    ['DEV_ECC_DBE_AGG_TOTAL', '11'],
    ['DEV_RETIRED_SBE', '14'],
    ['DEV_RETIRED_DBE', '15'],
    ['DEV_RETIRED_PENDING', '0'],
    ['DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL', '5'],
    ['DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL', '6'],
    ['PROF_GR_ENGINE_ACTIVE', '0.998000'],
    ['PROF_SM_ACTIVE', '0.912000'],
    ['PROF_SM_OCCUPANCY', '0.250000'],
    ['PROF_PIPE_TENSOR_ACTIVE', '0.433500'],
    ['PROF_DRAM_ACTIVE', '0.305000'],
    ['PROF_PIPE_FP64_ACTIVE', '0.000000'],
    ['PROF_PIPE_FP32_ACTIVE', '0.125000'],
    ['PROF_PIPE_FP16_ACTIVE', '0.062500'],
    ['PROF_PCIE_TX_BYTES', '589824'],
    ['PROF_PCIE_RX_BYTES', '1048576'],
    ['PROF_NVLINK_TX_BYTES', '200000000000'],
    ['PROF_NVLINK_RX_BYTES', '200000000001'],
  ])('shows %s as the exporter writes it', (name, value) => {
    expect(seriesOf(page, `DCGM_FI_${name}`)).toEqual([`DCGM_FI_${name}{${labels}} ${value}`]);
  });

  test.each([
    ['muster_gpu_nvlink_crc_errors_total', '7'],
    ['muster_gpu_recovery_action', '1'],
    ['muster_gpu_sram_threshold_exceeded', '0'],
  ])('shows %s, which the exporter has not', (name, value) => {
    const ownLabels = labels.replace('modelName="Some GPU 80GB",', '');
    expect(seriesOf(page, name)).toEqual([`${name}{${ownLabels}} ${value}`]);
  });

  test('can carry its host in the label of newer exporters', () => {
    expect(render(gpuParts(anObservation([card]), { hostnameLabel: 'hostname' }))).toContain(
      ',hostname="node-1",',
    );
  });

  test('names the task that holds it without a label of Prometheus', () => {
    const held = render(gpuParts(anObservation([card], { holders: new Map([[card.uuid, aTask]]) })));
    expect(seriesOf(held, 'DCGM_FI_DEV_GPU_UTIL')).toEqual([
      `DCGM_FI_DEV_GPU_UTIL{${labels},hpc_job="job_0123456789ab",` +
        'muster_job="job_0123456789ab",muster_attempt="2",muster_rank="1"} 97',
    ]);
    expect(held).not.toMatch(/[{,](?:job|instance)=/);
  });

  test('that is simulated says so in every series', () => {
    const simulated = render(gpuParts(anObservation([{ ...card, simulated: true }])));
    const series = simulated.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(series.length).toBeGreaterThan(30);
    expect(series.filter((line) => !line.includes('simulated="true"'))).toEqual([]);
  });

  test('of which little is known has only the labels that are known', () => {
    const bare = aCard(0, { index: null, pciBusId: null, model: '' });
    const gpuDriver = {
      source: 'nvml',
      profilingSource: null,
      driverVersion: null,
      cudaVersion: null,
    } as const;
    expect(seriesOf(render(gpuParts(anObservation([bare], { gpuDriver }))), 'DCGM_FI_DEV_GPU_UTIL')).toEqual([
      `DCGM_FI_DEV_GPU_UTIL{UUID="${bare.uuid}",Hostname="node-1"} 97`,
    ]);
  });
});

test('what was not read is not there, with neither help nor type', () => {
  const [one, other] = [aCard(0), aCard(1)];
  const samples = [{ ...emptySample(one.uuid), temperature: 50 }, emptySample(other.uuid)];
  const page = render(gpuParts(anObservation([one, other], { samples }), { lastXids: null }));
  expect(namesOf(page)).toEqual(['DCGM_FI_DEV_GPU_TEMP']);
  expect(seriesOf(page, 'DCGM_FI_DEV_GPU_TEMP')).toHaveLength(1);
});

test('a card that could not be read this time has no values of an earlier time', () => {
  const [one, other] = [aCard(0), aCard(1)];
  const page = render(gpuParts(anObservation([one, other], { samples: [aSample(one)] })));
  expect(seriesOf(page, 'DCGM_FI_DEV_GPU_TEMP')).toHaveLength(1);
});

test('before the first reading there is nothing', () => {
  expect(render(gpuParts(anObservation([aCard(0)], { atMs: 0, samples: [] })))).toBe('');
});

describe('Xids', () => {
  const [card, other] = [aCard(0), aCard(1)];
  const xids = (change: Partial<GpuPageParts>, gpus = [card, other]) =>
    seriesOf(render(gpuParts(anObservation(gpus), change)), 'DCGM_FI_DEV_XID_ERRORS');

  test('show the last one with its code and words, or that there was none', () => {
    const lastXids = new Map([[card.uuid, { xid: 79, message: 'GPU has fallen off the bus' }]]);
    expect(xids({ lastXids }).map((line) => line.replace(/.*580\.1\.2"/, ''))).toEqual([
      ',err_code="79",err_msg="GPU has fallen off the bus"} 79',
      ',err_code="0",err_msg="No Error"} 0',
    ]);
  });

  test('that nobody watches for are not reported to be none', () => {
    expect(xids({ lastXids: null })).toEqual([]);
    expect(xids({}, [aCard(0, { simulated: true })])).toEqual([]);
  });
});

describe('MIG instances', () => {
  test('are rows of their card with profile and number, without utilisation', () => {
    const [one, other] = [anInstance(7), anInstance(8)];
    const samples = [one, other].map((gpu) => aSample(gpu, { utilization: null }));
    const page = render(gpuParts(anObservation([one, other], { samples })));
    expect(seriesOf(page, 'DCGM_FI_DEV_GPU_UTIL')).toEqual([]);
    expect(seriesOf(page, 'DCGM_FI_DEV_FB_USED')).toEqual(
      [one, other].map(
        ({ uuid }, index) =>
          'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-10000000-aaaa-bbbb-cccc-000000000000",' +
          'pci_bus_id="00000000:0B:00.0",device="nvidia0",modelName="Some GPU 80GB",GPU_I_PROFILE="1g.10gb",' +
          `GPU_I_ID="${index + 7}",Hostname="node-1",DCGM_FI_DRIVER_VERSION="580.1.2",muster_device="${uuid}"} 74211`,
      ),
    );
  });

  test('that share a GPU instance are series of their own', () => {
    const page = render(gpuParts(anObservation([anInstance(7, 0), anInstance(7, 1)])));
    expect(seriesOf(page, 'DCGM_FI_DEV_FB_USED')).toHaveLength(2);
  });

  test('have the Xids of their card', () => {
    const lastXids = new Map([[aCard(0).uuid, { xid: 94, message: 'Contained ECC error' }]]);
    const page = render(gpuParts(anObservation([anInstance(7), anInstance(8)]), { lastXids }));
    expect(seriesOf(page, 'DCGM_FI_DEV_XID_ERRORS').map((line) => line.split('} ')[1])).toEqual(['94', '94']);
  });
});
