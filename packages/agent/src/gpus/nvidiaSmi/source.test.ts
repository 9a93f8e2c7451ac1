import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fakeGpu } from '../../../../../test/support/fakeNvidiaSmi.ts';
import { useWorkshop } from './testing/sources.ts';

const workshop = useWorkshop();
const { aNode, aScript } = workshop;
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

  test('a driver that names no instances is reported', async () => {
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
      // A card that the driver does not know any longer leaves no trace in a listing: counts are compared elsewhere.
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

  /** Three cards of which the first is dead; its calls are written down. */
  const deadFirst = `echo "$*" >>"$0.calls"
case "$*" in
*topo*|*compute*) exit 1 ;;
--help*) printf '"uuid"\\n"temperature.gpu"\\n' ;;
'-q -x -i 1') echo '<nvidia_smi_log><gpu><uuid>GPU-b</uuid></gpu></nvidia_smi_log>' ;;
'-q -x -i 2') echo '<nvidia_smi_log><gpu><uuid>GPU-c</uuid></gpu></nvidia_smi_log>' ;;
'-q -x -i 3') echo 'No devices were found' ;;
*'-i GPU-b,GPU-c') [ -e "$0.worse" ] && echo 'Unable to determine the device handle for GPU0000:02:00.0: Unknown Error' || printf 'GPU-b, 40\\nGPU-c, 41\\n' ;;
*'-i GPU-b') exec sleep 600 ;;
*) echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error'; exit 255 ;;
esac`;
  const sampleCalls = (): readonly string[] =>
    readFileSync(join(workshop.dir, 'script.calls'), 'utf8')
      .split('\n')
      .filter((call) => call.startsWith('--query-gpu'));

  test('once the dead one is known, one call samples the others', async () => {
    const source = aScript(deadFirst);
    expect((await source.list()).gpus.map(({ uuid }) => uuid)).toEqual(['GPU-b', 'GPU-c']);
    const { samples, problems } = await source.sample();
    expect([samples.map(({ temperature }) => temperature), problems]).toEqual([[40, 41], []]);
    expect(sampleCalls()).toHaveLength(1);
  });

  test('one that hangs is named, and no other is asked behind it', async () => {
    const source = aScript(deadFirst, { deadlineMs: 2000 });
    await source.list();
    writeFileSync(join(workshop.dir, 'script.worse'), '');
    const { samples, problems } = await source.sample();
    expect(samples).toEqual([]);
    expect(problems).toMatchObject([{ kind: 'hung', gpuUuid: 'GPU-b' }]);
    expect(sampleCalls().map((call) => call.split(' ').at(-1))).toEqual(['GPU-b,GPU-c', 'GPU-b']);
  });

  test('one that is counted and not shown is reported, and the numbers of the others are looked up', async () => {
    const source = aScript(`case "$1" in
-q) echo '<nvidia_smi_log><attached_gpus>2</attached_gpus><gpu><uuid>GPU-b</uuid></gpu></nvidia_smi_log>' ;;
-L) printf 'GPU 0: X (UUID: GPU-a)\\nGPU 1: X (UUID: GPU-b)\\n' ;;
*) exit 1 ;;
esac`);
    expect(await source.list()).toMatchObject({
      gpus: [{ uuid: 'GPU-b', index: 1 }],
      problems: [{ kind: 'lost', gpuUuid: null, evidence: '2 GPUs attached, 1 described' }],
    });
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

  test('all cards are dead: each is reported, without numbers', async () => {
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
      `echo start >>"${workshop.dir}/starts"; echo 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error'; exit 255`,
    );
    expect(await source.list()).toMatchObject({
      gpus: [],
      problems: [{ kind: 'lost', pciBusId: '00000000:3b:00.0' }],
    });
    expect(readFileSync(join(workshop.dir, 'starts'), 'utf8').split('\n').length).toBeLessThan(6);
  });
});
