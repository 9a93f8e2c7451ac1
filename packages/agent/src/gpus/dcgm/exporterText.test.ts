import { expect, test } from 'vitest';
import { emptyActivity } from '../gpuSource.ts';
import { parseExporterPage } from './exporterText.ts';

const card = 'GPU-10000000-aaaa-bbbb-cccc-000000000001';

function activityOf(...lines: string[]) {
  return parseExporterPage(lines.join('\n')).readings.find(({ cardUuid }) => cardUuid === card)?.activity;
}

test('values come by card, whatever else the page holds', () => {
  const other = card.replace(/1$/, '2');
  const page = parseExporterPage(`# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="${card}",device="nvidia0"} 97

# a comment
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="${card}",device="nvidia0",Hostname="a"} 0.912000
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="${other}",device="nvidia1",Hostname="a"} 0.250000
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="${card}",device="nvidia0",Hostname="a"} 51200000000
`);
  expect(page).toEqual({
    seriesCount: 4,
    readings: [
      {
        cardUuid: card,
        gpuInstanceId: null,
        activity: { ...emptyActivity, smActive: 0.912, pcieTxBytes: 51_200_000_000 },
      },
      { cardUuid: other, gpuInstanceId: null, activity: { ...emptyActivity, smActive: 0.25 } },
    ],
  });
});

test.each([
  ['spaces after commas', `{gpu="0", UUID="${card}", device="nvidia0"} 0.5`],
  ['a label of small letters', `{gpu="0",uuid="${card}"} 0.5`],
  ['a comma at the end', `{UUID="${card}",} 0.5`],
  ['a time stamp', `{UUID="${card}"} 0.5 1700000000000`],
  ['several spaces', `{UUID="${card}"}   0.5  `],
  ['an exponent', `{UUID="${card}"} 5e-1`],
  ['quotes, commas and braces in another label', `{pod="a\\"},b=\\\\",UUID="${card}",namespace=""} 0.5`],
])('releases and proxies write lines in their own way: %s', (_, rest) => {
  expect(activityOf(`DCGM_FI_PROF_DRAM_ACTIVE${rest}`)?.dramActive).toBe(0.5);
});

test('the names of DCGM 4.6 mean the same', () => {
  const line = `DCGM_FI_PROF_TENSOR_UTIL_RATIO{gpu="0",UUID="${card}",hostname="a"} 0.433000`;
  expect(activityOf(line)?.tensorActive).toBe(0.433);
});

test('instances of a card in MIG mode are distinguished', () => {
  const line = (id: number, value: string) =>
    `DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="${card}",GPU_I_PROFILE="1g.10gb",GPU_I_ID="${id}"} ${value}`;
  expect(
    parseExporterPage([line(7, '0.25'), line(8, '0.75')].join('\n')).readings.map(
      ({ gpuInstanceId, activity }) => [gpuInstanceId, activity.graphicsActive],
    ),
  ).toEqual([
    [7, 0.25],
    [8, 0.75],
  ]);
});

test.each(['NaN', '+Inf', '-0.1', '1.2', '9223372036854775794', '140737488355328', '0x1', '', '1_0', 'N/A'])(
  'a ratio of %s was not read',
  (value) => {
    expect(activityOf(`DCGM_FI_PROF_SM_ACTIVE{UUID="${card}"} ${value}`)?.smActive ?? null).toBeNull();
  },
);

test.each(['2147483632', '2147483635', '140737488355328', '140737488355331', '9223372036854775794', '-1'])(
  'a rate of %s bytes a second was not read',
  (value) => {
    expect(activityOf(`DCGM_FI_PROF_PCIE_RX_BYTES{UUID="${card}"} ${value}`)).toEqual(emptyActivity);
  },
);

test('a unit that was busy all the time may be counted a little above that', () => {
  expect(activityOf(`DCGM_FI_PROF_SM_ACTIVE{UUID="${card}"} 1.003000`)?.smActive).toBe(1);
});

test.each([
  ['no UUID', 'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.5'],
  ['no labels', 'DCGM_FI_PROF_SM_ACTIVE 0.5'],
  ['an open quote', `DCGM_FI_PROF_SM_ACTIVE{UUID="${card} 0.5`],
  ['an open brace', `DCGM_FI_PROF_SM_ACTIVE{UUID="${card}" 0.5`],
  ['no value', `DCGM_FI_PROF_SM_ACTIVE{UUID="${card}"}`],
  ['two values', `DCGM_FI_PROF_SM_ACTIVE{UUID="${card}"} 0.5 x`],
  ['a UUID that is none', 'DCGM_FI_PROF_SM_ACTIVE{UUID="../../etc"} 0.5'],
  ['an instance that is no number', `DCGM_FI_PROF_SM_ACTIVE{UUID="${card}",GPU_I_ID="x"} 0.5`],
  ['a line without end', `DCGM_FI_PROF_SM_ACTIVE{pod="${'x'.repeat(10_000)}",UUID="${card}"} 0.5`],
])('a line with %s is passed over, its neighbours are not', (_, line) => {
  const sound = `DCGM_FI_PROF_DRAM_ACTIVE{UUID="${card}"} 0.25`;
  expect(parseExporterPage([line, sound].join('\n')).readings).toEqual([
    { cardUuid: card, gpuInstanceId: null, activity: { ...emptyActivity, dramActive: 0.25 } },
  ]);
});

test.each([
  '',
  '\0\u0001\u0002',
  '<html><body>{"status": 1}</body></html>',
  'NVRM: Xid (PCI:0000:9b:00): 79,',
])('text that is no page of Prometheus holds no series: %j', (text) => {
  expect(parseExporterPage(text)).toEqual({ readings: [], seriesCount: 0 });
});
