import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  changeFakeNvidiaSmi,
  type FakeNvidiaSmi,
  fakeGpu,
  writeFakeNvidiaSmi,
} from '../../../../../test/support/fakeNvidiaSmi.ts';
import { waitFor } from '../../../../../test/support/services.ts';
import type { GpuSource } from '../gpuSource.ts';
import { createNvidiaSmiSource, type NvidiaSmiOptions } from './source.ts';

const LONG_MS = 15_000;
const SHORT_MS = 200;

let dir = '';
let opened: GpuSource[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'muster-nvidia-smi-'));
  opened = [];
});
afterEach(async () => {
  for (const source of opened) await source.close();
  rmSync(dir, { recursive: true, force: true });
});

function aSource(path: string, options: Partial<NvidiaSmiOptions> = {}): GpuSource {
  const source = createNvidiaSmiSource({
    path,
    environment: { PATH: '/usr/bin:/bin' },
    deadlineMs: LONG_MS,
    inventoryDeadlineMs: LONG_MS,
    // Starts are always cheap.
    nowMs: () => 0,
    ...options,
  });
  opened.push(source);
  return source;
}

function aNode(behaviour: Partial<FakeNvidiaSmi> = {}, options: Partial<NvidiaSmiOptions> = {}) {
  const path = writeFakeNvidiaSmi(dir, behaviour);
  return {
    source: aSource(path, options),
    becomes: (next: Partial<FakeNvidiaSmi>) => changeFakeNvidiaSmi(path, next),
  };
}

/** A shell script in the place of nvidia-smi. */
function aScript(script: string, options: Partial<NvidiaSmiOptions> = {}): GpuSource {
  const path = join(dir, 'script');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return aSource(path, options);
}

const [first, second, third] = [fakeGpu(0), fakeGpu(1), fakeGpu(2)];

describe('a healthy node', () => {
  test('its inventory, with links and affinities', async () => {
    const { source } = aNode({ gpus: [first, second], nics: ['mlx5_0'], linkKind: 'NV12' });
    const listing = await source.list();
    expect(listing).toMatchObject({ driverVersion: '580.10.01', cudaVersion: '13.0', problems: [] });
    expect(listing.gpus[1]).toEqual({
      uuid: second.uuid,
      model: 'NVIDIA Fake 80GB',
      memoryMb: 81_559,
      simulated: false,
      index: 1,
      pciBusId: '00000000:01:00.0',
      numaNode: 0,
      cpuAffinity: '0-31',
      serial: null,
      mig: null,
    });
    expect(listing.links).toEqual([
      { from: first.uuid, to: second.uuid, kind: 'NV12' },
      { from: first.uuid, to: 'mlx5_0', kind: 'PXB' },
      { from: second.uuid, to: 'mlx5_0', kind: 'PXB' },
    ]);
    expect([source.name, source.onXid]).toEqual(['nvidia-smi', null]);
  });

  test('its samples, with processes, and values as they change', async () => {
    const busy = fakeGpu(0, { processes: [{ pid: 4711, memoryMb: 39_000 }] });
    const { source, becomes } = aNode({ gpus: [busy, second] });
    await source.list();
    const { samples, problems } = await source.sample();
    expect(problems).toEqual([]);
    expect(samples).toMatchObject([
      {
        uuid: first.uuid,
        utilization: 97,
        memoryUsedMb: 40_000,
        powerWatts: 512.25,
        processes: [{ pid: 4711, memoryMb: 39_000 }],
      },
      { uuid: second.uuid, processes: [], recoveryAction: 0 },
    ]);
    becomes({
      gpus: [fakeGpu(0, { values: { 'utilization.gpu': '3', 'temperature.gpu': '[N/A]' } }), second],
    });
    expect((await source.sample()).samples[0]).toMatchObject({ utilization: 3, temperature: null });
  });

  test('where a start is dear, processes are left out', async () => {
    let ms = 0;
    const { source } = aNode({}, { nowMs: () => (ms += 1000) });
    await source.list();
    expect((await source.sample()).samples.map(({ processes }) => processes)).toEqual([null, null]);
  });

  test('nothing was listed, so nothing is sampled', async () => {
    expect(await aNode().source.sample()).toEqual({ samples: [], problems: [] });
  });

  test('a field that the program does not know is left out', async () => {
    const source = aScript(`case "$1" in
-q) cat <<'END'
<?xml version="1.0" ?><nvidia_smi_log><attached_gpus>1</attached_gpus><gpu><uuid>GPU-a</uuid></gpu></nvidia_smi_log>
END
;;
--help-query-gpu) printf '"uuid"\\n"temperature.gpu"\\n"utilization.gpu"\\n' ;;
--query-gpu=uuid,temperature.gpu) echo 'GPU-a, 55' ;;
--query-gpu=*) echo 'Field "utilization.gpu" is not a valid field to query.'; exit 2 ;;
*) exit 1 ;;
esac`);
    await source.list();
    const { samples, problems } = await source.sample();
    expect(problems).toEqual([]);
    expect(samples).toMatchObject([{ uuid: 'GPU-a', temperature: 55, utilization: null, processes: null }]);
  });
});

describe('MIG', () => {
  const instances = [
    {
      uuid: 'MIG-aaaa',
      profile: '3g.40gb',
      gpuInstanceId: 1,
      memoryTotalMb: 40_448,
      memoryUsedMb: 900,
      pids: [77],
    },
    {
      uuid: 'MIG-bbbb',
      profile: '1g.10gb',
      gpuInstanceId: 9,
      memoryTotalMb: 9856,
      memoryUsedMb: 12,
      pids: [],
    },
  ];

  test('a card is replaced by its instances, in the inventory and in samples', async () => {
    const { source } = aNode({ gpus: [fakeGpu(0, { mig: instances }), second] });
    const { gpus, problems, links } = await source.list();
    expect(problems).toEqual([]);
    expect(gpus.map(({ uuid, memoryMb, index }) => [uuid, memoryMb, index])).toEqual([
      ['MIG-aaaa', 40_448, 0],
      ['MIG-bbbb', 9856, 0],
      [second.uuid, 81_559, 1],
    ]);
    expect(gpus[0]).toMatchObject({
      model: 'NVIDIA Fake 80GB',
      pciBusId: '00000000:00:00.0',
      mig: { parentUuid: first.uuid, profile: '3g.40gb', gpuInstanceId: 1, computeInstanceId: 0 },
    });
    // Links are of cards.
    expect(links).toEqual([{ from: first.uuid, to: second.uuid, kind: 'NV18' }]);

    const sampling = await source.sample();
    expect(sampling.problems).toEqual([]);
    expect(sampling.samples).toMatchObject([
      { uuid: 'MIG-aaaa', utilization: null, memoryUsedMb: 900, temperature: 61, processes: [{ pid: 77 }] },
      { uuid: 'MIG-bbbb', memoryUsedMb: 12, powerWatts: null, processes: [] },
      { uuid: second.uuid, utilization: 97, powerWatts: 512.25 },
    ]);
  });

  test('an instance that is gone has no sample', async () => {
    const { source, becomes } = aNode({ gpus: [fakeGpu(0, { mig: instances })] });
    await source.list();
    becomes({ gpus: [fakeGpu(0, { mig: instances.slice(0, 1) })] });
    expect((await source.sample()).samples.map(({ uuid }) => uuid)).toEqual(['MIG-aaaa']);
  });

  test('a driver that names no instances is told about', async () => {
    const source = aScript(`[ "$1" = -L ] && exit 1
[ "$1" = -q ] && cat <<'END'
<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu><uuid>GPU-a</uuid><mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
</mig_device></mig_devices></gpu></nvidia_smi_log>
END`);
    const { gpus, problems } = await source.list();
    expect(gpus).toEqual([]);
    expect(problems).toContainEqual(expect.objectContaining({ kind: 'unreadable', gpuUuid: 'GPU-a' }));
  });
});

describe('one card fails', () => {
  test.each(['dead', 'gone', 'lost'] as const)(
    'one that is %s is told, the others are read, and it may come back',
    async (state) => {
      const { source, becomes } = aNode({ gpus: [first, second, third] });
      await source.list();
      becomes({ gpus: [first, { ...second, state }, third] });

      const sampling = await source.sample();
      expect(sampling.samples.map(({ uuid }) => uuid)).toEqual([first.uuid, third.uuid]);
      expect(sampling.problems).toMatchObject([
        { kind: 'lost', gpuUuid: second.uuid, pciBusId: second.pciBusId },
      ]);

      const listing = await source.list();
      expect(listing.gpus.map(({ uuid }) => uuid)).toEqual([first.uuid, third.uuid]);
      const listed = listing.problems.map(({ kind, gpuUuid }) => [kind, gpuUuid]);
      // A card that the driver does not know any more leaves no trace in a listing: counts are compared elsewhere.
      expect(listed).toEqual(state === 'gone' ? [] : [['lost', second.uuid]]);
      const still = await source.sample();
      expect(still.samples).toHaveLength(2);
      expect(still.problems).toEqual([]);

      becomes({ gpus: [first, second, third] });
      expect(await source.list()).toMatchObject({ gpus: [{}, {}, {}], problems: [] });
      expect((await source.sample()).samples.map(({ uuid }) => uuid)).toEqual([
        first.uuid,
        second.uuid,
        third.uuid,
      ]);
    },
  );

  test('the dead one was there first, and nobody knows its UUID', async () => {
    const { source } = aNode({ gpus: [{ ...first, state: 'dead' }, second] });
    const { gpus, problems, driverVersion } = await source.list();
    expect(gpus.map(({ uuid, index }) => [uuid, index])).toEqual([[second.uuid, 1]]);
    expect(driverVersion).toBe('580.10.01');
    expect(problems).toMatchObject([{ kind: 'lost', gpuUuid: null, pciBusId: '00000000:00:00.0' }]);
  });

  test('one that needs a reset stays listed, with what it still tells', async () => {
    const { source } = aNode({ gpus: [{ ...first, state: 'reset_required' }, second] });
    const { gpus, problems } = await source.list();
    expect(gpus).toHaveLength(2);
    expect(problems).toMatchObject([{ kind: 'reset_required', gpuUuid: first.uuid }]);
    const sampling = await source.sample();
    expect(sampling.samples[0]).toMatchObject({ uuid: first.uuid, utilization: null, temperature: null });
    expect(sampling.problems).toMatchObject([{ kind: 'reset_required', gpuUuid: first.uuid }]);
  });

  test('all cards are dead: each is told, no number is', async () => {
    const { source, becomes } = aNode({ gpus: [first, second] });
    await source.list();
    becomes({
      gpus: [
        { ...first, state: 'dead' },
        { ...second, state: 'dead' },
      ],
    });
    const { samples, problems } = await source.sample();
    expect(samples).toEqual([]);
    expect(problems.map(({ kind, gpuUuid }) => [kind, gpuUuid])).toEqual([
      ['lost', first.uuid],
      ['lost', second.uuid],
    ]);
  });

  test('a program that names the same dead card whichever is asked for is not asked for ever', async () => {
    const source = aScript(
      `echo start >>"${dir}/starts"; echo 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error'; exit 255`,
    );
    expect(await source.list()).toMatchObject({
      gpus: [],
      problems: [{ kind: 'lost', pciBusId: '00000000:3b:00.0' }],
    });
    expect(readFileSync(join(dir, 'starts'), 'utf8').split('\n').length).toBeLessThan(6);
  });
});

describe('the driver fails', () => {
  test.each([
    ['Failed to initialize NVML: Driver/library version mismatch', 18, 'driver_mismatch'],
    ['Failed to initialize NVML: Unknown Error', 255, 'no_permission'],
    ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, 'driver_not_loaded'],
    ['Something nobody has seen before', 3, 'unknown_error'],
    ['Something nobody has seen before', 0, 'unreadable'],
    ['', 0, 'unreadable'],
  ])('%j, status %i: %s', async (text, status, kind) => {
    const { source, becomes } = aNode({ failure: { text, status } });
    expect(await source.list()).toMatchObject({ gpus: [], problems: [{ kind, gpuUuid: null }] });

    becomes({});
    expect((await source.list()).gpus).toHaveLength(2);
    becomes({ failure: { text, status } });
    expect(await source.sample()).toMatchObject({ samples: [], problems: [{ kind, gpuUuid: null }] });
    // Which cards there are was not said, so what is known of them stays.
    expect(await source.list()).toMatchObject({ gpus: [{}, {}], problems: [{ kind }] });

    becomes({});
    expect((await source.sample()).samples).toHaveLength(2);
  });

  test('it has no card to show any more', async () => {
    const { source, becomes } = aNode({ gpus: [first, second] });
    await source.list();
    becomes({ gpus: [] });
    const { samples, problems } = await source.sample();
    expect(samples).toEqual([]);
    expect(problems.map(({ kind, gpuUuid }) => [kind, gpuUuid])).toEqual([
      ['lost', first.uuid],
      ['lost', second.uuid],
    ]);
    expect(await source.list()).toMatchObject({ gpus: [], problems: [{ kind: 'lost', gpuUuid: null }] });
  });

  test('it hangs, and recovers', async () => {
    const source = aScript(
      `[ -e "${dir}/hung" ] && exec sleep 600
[ "$1" = -q ] && echo '<nvidia_smi_log><gpu><uuid>GPU-a</uuid></gpu></nvidia_smi_log>'
[ "$1" = --help-query-gpu ] && printf '"uuid"\\n"temperature.gpu"\\n'
case "$1" in --query-gpu=*) echo 'GPU-a, 50' ;; esac
exit 0`,
      { deadlineMs: SHORT_MS },
    );
    await source.list();
    writeFileSync(join(dir, 'hung'), '');
    expect(await source.sample()).toMatchObject({ samples: [], problems: [{ kind: 'hung', gpuUuid: null }] });
    rmSync(join(dir, 'hung'));
    // A busy machine may miss such a short deadline for once.
    await waitFor('a sample', async () => (await source.sample()).samples.length === 1);
  });

  test('nothing is started behind a program that cannot be killed', async () => {
    const source = aScript(
      `echo start >>"${dir}/starts"; while [ ! -e "${dir}/release" ]; do sleep 0.05; done`,
      { inventoryDeadlineMs: SHORT_MS, killGroup: () => {} },
    );
    expect(await source.list()).toMatchObject({ problems: [{ kind: 'hung' }] });
    expect(await source.list()).toMatchObject({
      problems: [{ kind: 'hung', evidence: expect.stringContaining('no other is started') }],
    });
    expect(readFileSync(join(dir, 'starts'), 'utf8')).toBe('start\n');
    writeFileSync(join(dir, 'release'), '');
  });
});

describe('what is no nvidia-smi', () => {
  test.each([
    ['10 MB of zeros', 'head -c 10000000 /dev/zero'],
    ['10 MB of noise', 'head -c 10000000 /dev/urandom'],
    ['10 MB of lines that look like rows', 'yes "0, GPU-a, 1, 2, 3" | head -c 10000000'],
  ])('%s', async (_, command) => {
    const source = aScript(command);
    expect(await source.list()).toMatchObject({ gpus: [], problems: [{ kind: 'unreadable' }] });
  });

  test('garbage in place of samples', async () => {
    const { source } = aNode();
    await source.list();
    writeFileSync(join(dir, 'nvidia-smi'), '#!/bin/sh\nhead -c 10000000 /dev/urandom\n');
    const { samples, problems } = await source.sample();
    expect(samples).toEqual([]);
    expect(problems).toMatchObject([{ kind: 'unreadable', gpuUuid: null }]);
    expect(problems[0]?.evidence.length).toBeLessThan(500);
  });

  test('half a document', async () => {
    const source = aScript(`echo '<?xml version="1.0" ?><nvidia_smi_log><gpu><uuid>GPU-a</uuid>'`);
    expect(await source.list()).toMatchObject({ gpus: [], problems: [{ kind: 'unreadable' }] });
  });

  test('a program that is missing fails the source as a whole', async () => {
    const source = aSource(join(dir, 'nowhere'));
    await expect(source.list()).rejects.toThrow(
      /nowhere cannot be run on this node, since there is no such program/,
    );
  });

  test('a topology that is not understood costs only the links', async () => {
    const source =
      aScript(`[ "$1" = -q ] && echo '<nvidia_smi_log><gpu><uuid>GPU-a</uuid></gpu></nvidia_smi_log>'
[ "$1" = topo ] && printf '\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t X \\n\\n'
exit 0`);
    expect(await source.list()).toMatchObject({
      gpus: [{ uuid: 'GPU-a', cpuAffinity: null }],
      links: [],
      problems: [{ kind: 'unreadable', gpuUuid: null }],
    });
  });
});
