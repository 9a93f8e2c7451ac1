import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { makeColours } from '../output/colours.ts';
import type { View } from '../output/table.ts';
import {
  aCondition,
  aGpu,
  aHostReading,
  aJob,
  aNode,
  aReading,
  submittedAtMs,
} from '../testing/fakeCoordinator.ts';
import { aView } from '../testing/testContext.ts';
import { formatTop, type TopSnapshot } from './topText.ts';

const nowMs = submittedAtMs + 60_000;
const jobId = 'job_0123456789ab';
const snapshot: TopSnapshot = {
  nodes: [
    aNode({
      inventory: { ...aNode().inventory, gpus: [aGpu(1), aGpu(0)] },
      gpuUses: [{ uuid: 'GPU-0', jobId, attempt: 1 }],
      conditions: [aCondition({ gpuUuid: 'GPU-1' })],
      drainedGpuUuids: ['GPU-1'],
    }),
    aNode({
      name: 'node-2',
      state: 'silent',
      silentForMs: 45_000,
      inventory: { ...aNode().inventory, gpus: [aGpu(0, { uuid: 'GPU-s', simulated: true })] },
    }),
  ],
  telemetry: [
    {
      node: 'node-1',
      host: aHostReading({
        cpuUtilization: 12.4,
        memoryUsedMb: 8_192,
        load1: 3.25,
        networkReceiveBytes: 1_258_291,
        networkTransmitBytes: 0,
      }),
      gpus: [
        aReading({
          utilization: 87,
          memoryUsedMb: 71_680,
          powerWatts: 612.3,
          temperature: 64,
          smActive: 0.71,
        }),
      ],
    },
    {
      node: 'node-2',
      host: aHostReading({ atMs: nowMs - 45_000, cpuUtilization: 1 }),
      gpus: [aReading({ gpuUuid: 'GPU-s', atMs: nowMs - 45_000, utilization: 5, powerWatts: 100 })],
    },
  ],
  jobs: [aJob({ state: 'running' })],
};

function text(given: Partial<View> = {}, of = snapshot): string {
  const { summary, headings, lines } = formatTop(of, aView({ nowMs, ...given }));
  return [summary, ...headings, ...lines].join('\n');
}

test('each node has a line and each of its GPUs, with the job on it; what was not read is a dash', () => {
  expect(text()).toBe(
    [
      '2 nodes · 1/3 GPUs in use, 1 drained · 612 W · 1 job at work',
      'NODE    STATE             CPU        MEMORY  LOAD                  NETWORK  NOTE',
      '  GPU  BUSY                     MEMORY  POWER   TEMP    SM  JOB                     NOTE',
      'node-1  online           12 %  8 GiB/64 GiB   3.3  1.2 MiB/s in, 0 B/s out  xid_79 (drained)',
      '  0    ████████▋░  87 %  70 GiB/80 GiB  612 W  64 °C  71 %  job_0123456789ab train',
      '  1    -                      -/80 GiB      -      -     -                          xid_79 (drained)',
      'node-2  silent for 45 s   1 %      -/64 GiB     -                        -  read 45 s ago',
      '  0    ▌░░░░░░░░░   5 %       -/80 GiB  100 W      -     -                          read 45 s ago, simulated',
    ].join('\n'),
  );
});

test('a terminal of 80 columns keeps what matters, and without UTF-8 the bars are ASCII', () => {
  const narrow = text({ width: 80 });
  expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(narrow).toMatch(/ {2}0 {4}████████▋░ +87 % +70 GiB\/80 GiB .*job_0123456789ab/);
  expect(text({ unicode: false })).toContain('#########-  87 %');
});

test('old readings fade, conditions have the colour of the worst', () => {
  const coloured = text({ colours: makeColours(true) });
  expect(stripVTControlCharacters(coloured)).toBe(text());
  expect(coloured).toContain('\x1b[32m████████▋░  87 %\x1b[39m');
  expect(coloured).toContain('\x1b[2m▌░░░░░░░░░   5 %\x1b[22m');
  expect(coloured).toContain('\x1b[31mxid_79 (drained)');
});

test('nothing yet is shown as nothing', () => {
  expect(text({}, { nodes: [], telemetry: [], jobs: [] })).toContain(
    '0 nodes · 0/0 GPUs in use · 0 jobs at work',
  );
  const silent = text({}, { nodes: [aNode()], telemetry: [], jobs: [] });
  expect(silent).toContain('node-1  online    -  -/64 GiB     -        -');
});
