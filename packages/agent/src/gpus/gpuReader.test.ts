import { bareGpu } from '@muster/common/hardware';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GpuReader } from './gpuReader.ts';
import {
  emptyActivity,
  emptySample,
  type GpuActivity,
  type GpuListing,
  type GpuSampling,
  type GpuSource,
  type ProfilingSource,
} from './gpuSource.ts';

const deadlines = { listMs: 1_000, sampleMs: 200, profilingMs: 100 };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Calls that the test ends. */
class Calls<T> {
  readonly open: PromiseWithResolvers<T>[] = [];
  made = 0;

  readonly call = (): Promise<T> => {
    this.made += 1;
    const call = Promise.withResolvers<T>();
    this.open.push(call);
    return call.promise;
  };

  answer(value: T): void {
    this.open.shift()?.resolve(value);
  }

  fail(message: string): void {
    this.open.shift()?.reject(new Error(message));
  }
}

const listing: GpuListing = {
  gpus: [bareGpu('GPU-1')],
  driverVersion: '590.20.1',
  cudaVersion: null,
  links: [],
  problems: [],
};
const samplingOf = (temperature: number): GpuSampling => ({
  samples: [{ ...emptySample('GPU-1'), temperature }],
  problems: [],
});

function setUp(profiling: ProfilingSource | null = null) {
  const lists = new Calls<GpuListing>();
  const samples = new Calls<GpuSampling>();
  const source: GpuSource = {
    name: 'nvml',
    list: lists.call,
    sample: samples.call,
    onXid: null,
    close: async () => {},
  };
  const clock = { wallMs: () => 0, monotonicMs: () => Date.now() };
  const reader = new GpuReader({ source, profiling, clock, log: silentLogger, deadlines });
  return { reader, lists, samples };
}

/** Lets time pass. @returns whether the promise had settled by then */
async function after<T>(promise: Promise<T>, ms: number): Promise<T | 'not yet'> {
  let seen: T | 'not yet' = 'not yet';
  void promise.then((value) => {
    seen = value;
  });
  await vi.advanceTimersByTimeAsync(ms);
  return seen;
}

test('answers are passed on', async () => {
  const { reader, lists, samples } = setUp();
  const listed = reader.list();
  lists.answer(listing);
  expect(await listed).toEqual(listing);
  const sampled = reader.sample();
  await after(sampled, 0);
  samples.answer(samplingOf(61));
  expect(await sampled).toEqual(samplingOf(61));
});

test('a sample that hangs is a problem at its deadline, is never made twice, and old values are dropped', async () => {
  const { reader, samples } = setUp();
  const first = reader.sample();
  samples.answer(samplingOf(61));
  await first;

  const stuck = reader.sample();
  expect(await after(stuck, deadlines.sampleMs - 10)).toBe('not yet');
  expect(await after(stuck, 20)).toMatchObject({ samples: [], problems: [{ kind: 'hung', gpuUuid: null }] });
  // A caller that comes now does not wait at all.
  expect(await after(reader.sample(), 0)).toMatchObject({ samples: [], problems: [{ kind: 'hung' }] });
  expect(samples.made).toBe(2);

  // What comes too late is too old.
  samples.answer(samplingOf(99));
  await vi.advanceTimersByTimeAsync(0);
  const healed = reader.sample();
  await vi.advanceTimersByTimeAsync(0);
  samples.answer(samplingOf(62));
  expect(await healed).toEqual(samplingOf(62));
  expect(samples.made).toBe(3);
});

test('a sample asked for while one is under way joins it', async () => {
  const { reader, samples } = setUp();
  const both = [reader.sample(), reader.sample()];
  samples.answer(samplingOf(61));
  expect(await Promise.all(both)).toEqual([samplingOf(61), samplingOf(61)]);
  expect(samples.made).toBe(1);
});

test('a listing that takes its time is not hanging: samples are absent without a problem', async () => {
  const { reader, lists, samples } = setUp();
  const listed = reader.list();
  expect(await after(reader.sample(), deadlines.sampleMs)).toEqual({ samples: [], problems: [] });
  expect(samples.made).toBe(0);
  lists.answer(listing);
  expect(await listed).toEqual(listing);
});

test('a listing that hangs is a problem; the GPUs listed before stay', async () => {
  const { reader, lists, samples } = setUp();
  const first = reader.list();
  lists.answer(listing);
  await first;
  const hung = await after(reader.list(), deadlines.listMs);
  expect(hung).toMatchObject({ gpus: listing.gpus, problems: [{ kind: 'hung' }] });
  expect(await after(reader.sample(), 0)).toMatchObject({ samples: [], problems: [{ kind: 'hung' }] });
  expect(samples.made).toBe(0);
  lists.answer(listing);
  await vi.advanceTimersByTimeAsync(0);
  const again = reader.list();
  await vi.advanceTimersByTimeAsync(0);
  lists.answer(listing);
  expect((await again).problems).toEqual([]);
});

test('a source that fails is a problem with its sentence', async () => {
  const { reader, lists, samples } = setUp();
  const sampled = reader.sample();
  samples.fail('libnvidia-ml.so.1 cannot be loaded on this node');
  expect((await sampled).problems).toEqual([
    expect.objectContaining({
      kind: 'unknown_error',
      message: 'libnvidia-ml.so.1 cannot be loaded on this node',
    }),
  ]);
  const listed = reader.list();
  await vi.advanceTimersByTimeAsync(0);
  lists.fail('nvidia-smi printed garbage');
  expect(await listed).toMatchObject({ gpus: [], problems: [{ message: 'nvidia-smi printed garbage' }] });
});

test('activity of a profiling source goes before that of the source, value by value', async () => {
  const activities = new Calls<ReadonlyMap<string, GpuActivity>>();
  const profiling: ProfilingSource = { name: 'dcgmi', sample: activities.call, close: async () => {} };
  const { reader, samples } = setUp(profiling);
  const sampled = reader.sample();
  const own = { ...emptyActivity, smActive: 0.1, dramActive: 0.2 };
  samples.answer({
    samples: [{ ...emptySample('GPU-1'), activity: own }, emptySample('GPU-2')],
    problems: [],
  });
  activities.answer(new Map([['GPU-1', { ...emptyActivity, smActive: 0.9, tensorActive: 0.5 }]]));
  const result = await sampled;
  expect(result.samples.map(({ activity }) => activity)).toEqual([
    { ...emptyActivity, smActive: 0.9, tensorActive: 0.5, dramActive: 0.2 },
    null,
  ]);
  expect(reader.profilingError).toBeNull();
});

test('a profiling source that hangs costs its values, not the samples', async () => {
  const activities = new Calls<ReadonlyMap<string, GpuActivity>>();
  const profiling: ProfilingSource = {
    name: 'dcgm-exporter',
    sample: activities.call,
    close: async () => {},
  };
  const { reader, samples } = setUp(profiling);
  const first = reader.sample();
  samples.answer(samplingOf(61));
  expect(await after(first, deadlines.profilingMs)).toEqual(samplingOf(61));
  expect(reader.profilingError).toBe('dcgm-exporter has not answered within 100 ms');
  const second = reader.sample();
  samples.answer(samplingOf(62));
  expect(await after(second, 0)).toEqual(samplingOf(62));
  expect(activities.made).toBe(1);

  activities.fail('dcgm-exporter at http://127.0.0.1:9400/metrics refuses the connection');
  await vi.advanceTimersByTimeAsync(0);
  const third = reader.sample();
  activities.fail('refused');
  samples.answer(samplingOf(63));
  await third;
  expect(reader.profilingError).toBe('refused');
});
