/** The life of readers, with readers that the test controls: what a kernel does to a real one cannot be provoked. */
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import type { NvmlListing, NvmlSampling } from './protocol.ts';
import type { ReaderEnd, Standing } from './readerProcess.ts';
import { createNvmlSource, type Reader } from './source.ts';

const uuid = 'GPU-1';

const listing: NvmlListing = {
  gpus: [],
  driverVersion: '590.20.1',
  cudaVersion: null,
  links: [],
  cards: [{ index: 0, uuid, pciBusId: '00000000:10:00.0' }],
  closedCards: [],
  hasGpm: false,
  driverProblem: null,
};

/** Hangs in the kernel: it never answers, and is gone only when the test ends it. */
class StuckReader implements Reader {
  readonly pid = 4711;
  readonly standing: Standing = { cardIndex: 0, call: 'nvmlDeviceGetPowerUsage' };
  private readonly end = Promise.withResolvers<ReaderEnd>();
  readonly gone = this.end.promise;
  timesKilled = 0;
  readonly list = () => Promise.resolve(listing);
  readonly sample = () => new Promise<NvmlSampling>(() => {});

  kill(): void {
    this.timesKilled += 1;
  }

  vanish(): void {
    this.end.resolve({ unavailable: null, description: 'signal SIGKILL' });
  }
}

function stuckSource() {
  const started: StuckReader[] = [];
  const clock = { wallMs: () => 0, monotonicMs: () => 0 };
  const source = createNvmlSource(
    {
      library: 'lib',
      command: [],
      gpm: false,
      log: silentLogger,
      clock,
      deadlines: { sampleMs: 5 },
    },
    () => {
      const reader = new StuckReader();
      started.push(reader);
      return reader;
    },
  );
  return { source, started };
}

test('no second reader is started behind one that cannot be ended', async () => {
  const { source, started } = stuckSource();
  const first = await source.sample();
  expect(first.problems.map(({ kind, gpuUuid }) => ({ kind, gpuUuid }))).toEqual([
    { kind: 'hung', gpuUuid: uuid },
  ]);
  for (let sample = 0; sample < 3; sample += 1) {
    const { samples, problems } = await source.sample();
    expect({ samples, kinds: problems.map(({ kind, gpuUuid }) => ({ kind, gpuUuid })) }).toEqual({
      samples: [],
      // The node, of which nothing is read any longer, and the card that began it.
      kinds: [
        { kind: 'hung', gpuUuid: null },
        { kind: 'hung', gpuUuid: uuid },
      ],
    });
    expect(problems[0]?.message).toContain('pid 4711');
  }
  expect((await source.list()).problems[0]?.message).toContain('cannot be ended');
  expect(started).toHaveLength(1);
  expect(started[0]?.timesKilled).toBe(1);

  started[0]?.vanish();
  await started[0]?.gone;
  expect((await source.list()).driverVersion).toBe('590.20.1');
  expect(started).toHaveLength(2);
});
