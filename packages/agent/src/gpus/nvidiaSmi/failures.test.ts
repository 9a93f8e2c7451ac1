import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fakeGpu } from '../../../../../test/support/fakeNvidiaSmi.ts';
import { waitFor } from '../../../../../test/support/services.ts';
import { useWorkshop } from './testing/sources.ts';

const workshop = useWorkshop();
const { aNode, aScript, aSource } = workshop;
const [first, second] = [fakeGpu(0), fakeGpu(1)];

const shortMs = 200;

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
      `[ -e "${workshop.dir}/hung" ] && exec sleep 600
[ "$1" = -q ] && echo '<nvidia_smi_log><gpu><uuid>GPU-a</uuid></gpu></nvidia_smi_log>'
[ "$1" = --help-query-gpu ] && printf '"uuid"\\n"temperature.gpu"\\n'
case "$1" in --query-gpu=*) echo 'GPU-a, 50' ;; esac
exit 0`,
      { deadlineMs: shortMs },
    );
    await source.list();
    writeFileSync(join(workshop.dir, 'hung'), '');
    expect(await source.sample()).toMatchObject({ samples: [], problems: [{ kind: 'hung', gpuUuid: null }] });
    rmSync(join(workshop.dir, 'hung'));
    // A busy machine may miss such a short deadline for once.
    await waitFor('a sample', async () => (await source.sample()).samples.length === 1);
  });

  test('nothing is started behind a program that cannot be killed', async () => {
    const source = aScript(
      `echo start >>"${workshop.dir}/starts"; while [ ! -e "${workshop.dir}/release" ]; do sleep 0.05; done`,
      { inventoryDeadlineMs: shortMs, killGroup: () => {} },
    );
    try {
      expect(await source.list()).toMatchObject({ problems: [{ kind: 'hung' }] });
      expect(await source.list()).toMatchObject({
        problems: [{ kind: 'hung', evidence: expect.stringContaining('no other is started') }],
      });
      expect(readFileSync(join(workshop.dir, 'starts'), 'utf8')).toBe('start\n');
    } finally {
      writeFileSync(join(workshop.dir, 'release'), '');
    }
  });
});

describe('one lost GPU makes every call fail, whichever GPU it asks for', () => {
  const others = [fakeGpu(0), fakeGpu(1), fakeGpu(2), fakeGpu(3)] as const;
  const lost = others[2];
  const failure = {
    text: `Unable to determine the device handle for GPU2: ${lost.pciBusId}: GPU is lost.  Reboot the system to recover this GPU`,
    status: 15,
  };

  test('it alone is called lost, the others are hidden behind it, and none is missing', async () => {
    const { source, becomes } = aNode({ gpus: others });
    await source.list();
    becomes({ gpus: others, failure });
    const { samples, problems } = await source.sample();
    expect(samples).toEqual([]);
    expect(problems.map(({ kind, gpuUuid }) => `${kind} ${gpuUuid}`).sort()).toEqual(
      others.map(({ uuid }) => (uuid === lost.uuid ? `lost ${uuid}` : `hidden ${uuid}`)).sort(),
    );
    // What there is was not shown, so what was known stays.
    expect(await source.list()).toMatchObject({
      gpus: others.map(({ uuid }) => ({ uuid })),
      problems: [{ kind: 'lost', gpuUuid: lost.uuid }],
    });
    becomes({ gpus: others });
    expect((await source.sample()).samples).toHaveLength(others.length);
    expect((await source.list()).problems).toEqual([]);
  });

  test('then the driver itself fails: that is seen, too', async () => {
    const { source, becomes } = aNode({ gpus: others });
    await source.list();
    becomes({ gpus: others, failure });
    await source.list();
    becomes({ failure: { text: 'Failed to initialize NVML: Driver/library version mismatch', status: 18 } });
    expect(await source.sample()).toMatchObject({ problems: [{ kind: 'driver_mismatch', gpuUuid: null }] });
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
    writeFileSync(join(workshop.dir, 'nvidia-smi'), '#!/bin/sh\nhead -c 10000000 /dev/urandom\n');
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
    const source = aSource(join(workshop.dir, 'nowhere'));
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
