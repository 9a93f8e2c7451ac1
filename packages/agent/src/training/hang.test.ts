import { describe, expect, test } from 'vitest';
import type { GpuFacts } from './gpuStillness.ts';
import { HangDetector } from './hang.ts';

const busy: GpuFacts = { utilization: 99, powerWatts: 600, smActive: 0.85, tensorActive: 0.4 };
/** As a card shows on which a collective waits. */
const spinning: GpuFacts = { utilization: 100, powerWatts: 130, smActive: 0.03, tensorActive: 0 };
const nothing: GpuFacts = { utilization: 0, powerWatts: 70, smActive: 0, tensorActive: 0 };
const unread: GpuFacts = { utilization: null, powerWatts: null, smActive: null, tensorActive: null };
/** What many sources tell. */
const withoutActivity = (facts: GpuFacts): GpuFacts => ({ ...facts, smActive: null, tensorActive: null });

const minute = 60_000;

/** A task of two GPUs that is looked at once a second. */
class Story {
  nowMs = 1_000_000;
  readonly watch: HangDetector;
  readonly gpus: readonly string[];
  isFrozen = false;

  constructor({ gpus = ['GPU-0', 'GPU-1'], times = 10, atLeastMs = 5 * minute } = {}) {
    this.gpus = gpus;
    this.watch = new HangDetector({ times, atLeastMs }, gpus);
  }

  /** So many steps, each told by a line at its end. */
  steps(count: number, eachMs: number, isPrinted = true): this {
    for (let step = 0; step < count; step += 1) {
      this.quiet(eachMs, busy);
      // In this order: that there is more is known before it has been read.
      this.watch.progressed(this.nowMs);
      if (isPrinted) this.watch.stepPrinted();
    }
    return this;
  }

  /** Nothing but what the GPUs show: all of them the same, or each its own. */
  quiet(ms: number, ...facts: readonly GpuFacts[]): this {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; ) {
      this.nowMs = Math.min(endMs, this.nowMs + 1_000);
      this.watch.look(this.nowMs, this.isFrozen);
      this.gpus.forEach((uuid, index) => {
        const now = facts[index] ?? facts[0];
        if (now !== undefined) this.watch.gpuSampled(uuid, now, this.nowMs);
      });
    }
    return this;
  }

  get verdict() {
    return this.watch.verdict(this.nowMs);
  }
}

describe('a task hangs', () => {
  test.each([
    ['all GPUs spin', [spinning], 'pinned'],
    ['all GPUs spin, and nobody tells their activity', [withoutActivity(spinning)], 'pinned'],
    ['all GPUs spin, and nobody tells their power', [{ ...spinning, powerWatts: null }], 'pinned'],
    ['nothing runs on any GPU', [nothing], 'idle'],
    ['one rank is gone and the other waits for it', [nothing, spinning], 'pinned'],
  ] as const)('when it is silent for long and %s', (_what, facts, gpus) => {
    const story = new Story().steps(50, 10_000).quiet(6 * minute, ...facts);
    expect(story.verdict).toEqual({ quietForMs: 6 * minute, usualMs: 10_000, gpus, rank: null });
  });

  test('until it makes progress again', () => {
    const story = new Story().steps(50, 10_000).quiet(6 * minute, spinning);
    expect(story.verdict).not.toBeNull();
    story.watch.progressed(story.nowMs);
    expect(story.verdict).toBeNull();
  });

  test('also when one of its GPUs never worked for it', () => {
    const story = new Story();
    for (let step = 0; step < 50; step += 1) {
      story.quiet(10_000, busy, nothing);
      story.watch.progressed(story.nowMs);
      story.watch.stepPrinted();
    }
    expect(story.quiet(6 * minute, spinning, nothing).verdict?.gpus).toBe('pinned');
  });

  test('as its job says', () => {
    const story = new Story({ times: 3, atLeastMs: 10_000 }).steps(50, 5_000).quiet(15_000, spinning);
    expect(story.verdict).toBeNull();
    expect(story.quiet(1_000, spinning).verdict).toMatchObject({ quietForMs: 16_000, usualMs: 5_000 });
  });
});

describe('a task does not hang', () => {
  test.each([
    ['its GPUs compute', [busy]],
    ['one of its GPUs computes', [spinning, busy]],
    [
      'utilisation is full at more than 0.4 of the power it takes to compute',
      [withoutActivity({ ...spinning, powerWatts: 300 })],
    ],
    ['its SMs look still and the power says that they are not', [{ ...spinning, powerWatts: 550 }]],
    ['its GPUs do a little', [{ ...nothing, utilization: 7 }]],
    ['its GPUs cannot be read', [unread]],
    ['one of its GPUs cannot be read', [spinning, unread]],
  ] as const)('when it is silent and %s', (_what, facts) => {
    expect(new Story().steps(50, 10_000).quiet(60 * minute, ...facts).verdict).toBeNull();
  });

  test('when nobody looks at its GPUs any more', () => {
    const story = new Story().steps(50, 10_000).quiet(6 * minute, spinning);
    expect(story.quiet(29_000).verdict).not.toBeNull();
    expect(story.quiet(2_000).verdict).toBeNull();
  });

  test('when it has no GPUs', () => {
    expect(new Story({ gpus: [] }).steps(50, 10_000).quiet(60 * minute).verdict).toBeNull();
  });

  test('when its GPUs never worked for it: it computes elsewhere', () => {
    const story = new Story();
    for (let step = 0; step < 50; step += 1) {
      story.quiet(10_000, nothing).watch.progressed(story.nowMs);
      story.watch.stepPrinted();
    }
    expect(story.quiet(60 * minute, nothing).verdict).toBeNull();
  });

  test('when it is silent for no longer than the job allows, whatever is usual', () => {
    expect(new Story().steps(500, 1_000).quiet(5 * minute, spinning).verdict).toBeNull();
  });

  test('when it is silent for no longer than ten times what is usual', () => {
    const story = new Story().steps(50, 40_000).quiet(400_000, spinning);
    expect(story.verdict).toBeNull();
    expect(story.quiet(2_000, spinning).verdict).not.toBeNull();
  });

  test('while it evaluates and saves, which takes it many times a step', () => {
    const story = new Story().steps(50, 10_000).quiet(4 * minute, nothing);
    story.watch.progressed(story.nowMs);
    story.steps(100, 10_000);
    // What was seen once is usual: the longest counts, not the mean.
    expect(story.quiet(20 * minute, nothing).verdict).toBeNull();
    expect(story.quiet(21 * minute, nothing).verdict?.usualMs).toBe(4 * minute);
  });

  test('while a checkpoint grows', () => {
    const story = new Story().steps(50, 10_000);
    for (let second = 0; second < 1_200; second += 1) {
      story.quiet(1_000, nothing).watch.progressed(story.nowMs);
    }
    expect(story.verdict).toBeNull();
  });

  test('while its GPUs have been still only for the last third of its silence', () => {
    const story = new Story()
      .steps(50, 10_000)
      .quiet(8 * minute, busy)
      .quiet(4 * minute, spinning);
    expect(story.verdict).toBeNull();
    expect(story.quiet(4 * minute + 2_000, spinning).verdict).not.toBeNull();
  });

  test('in the time that the agent keeps it frozen, or does not run itself', () => {
    const story = new Story().steps(50, 10_000);
    story.isFrozen = true;
    expect(story.quiet(20 * minute, spinning).verdict).toBeNull();
    story.isFrozen = false;
    expect(story.quiet(4 * minute, spinning).verdict).toBeNull();
    story.nowMs += 20 * minute;
    expect(story.quiet(4 * minute, spinning).verdict).toBeNull();
    expect(story.quiet(2 * minute, spinning).verdict).not.toBeNull();
  });
});

describe('as long as its own past does not tell what is usual, there is no verdict', () => {
  test('with fewer than five intervals', () => {
    // The first two steps are starting up.
    expect(new Story().steps(6, 10_000).quiet(60 * minute, nothing).verdict).toBeNull();
    expect(new Story().steps(7, 10_000).quiet(60 * minute, nothing).verdict).not.toBeNull();
  });

  test('at the start: it prints a lot, and then loads data for long', () => {
    const story = new Story().steps(60, 1_000, false).quiet(60 * minute, nothing);
    expect(story.verdict).toBeNull();
  });

  test('without steps it needs a past as long as the silence that it judges', () => {
    const story = new Story().steps(400, 1_000, false).quiet(6 * minute, nothing);
    expect(story.verdict).toMatchObject({ usualMs: 1_000 });
  });

  test('starting up is not usual: compiling for an hour does not blind us', () => {
    const story = new Story().steps(10, 1_000, false).quiet(60 * minute, busy);
    story.watch.progressed(story.nowMs);
    story.steps(50, 10_000).quiet(6 * minute, nothing);
    expect(story.verdict?.usualMs).toBe(10_000);
  });

  test('a bad moment is forgotten after six hours', () => {
    const story = new Story().steps(50, 10_000).quiet(60 * minute, nothing);
    story.watch.progressed(story.nowMs);
    story.steps(340, minute);
    expect(story.quiet(11 * minute, nothing).verdict).toBeNull();
    story.watch.progressed(story.nowMs);
    story.steps(30, minute);
    expect(story.quiet(10 * 11 * minute + 2_000, nothing).verdict?.usualMs).toBe(11 * minute);
  });

  test('a bad moment is forgotten after six hours also where signs of progress are few', () => {
    const story = new Story().steps(50, 10_000).quiet(3 * 60 * minute, nothing);
    story.watch.progressed(story.nowMs);
    story.steps(15, 30 * minute).quiet(10 * 30 * minute + 2_000, nothing);
    expect(story.verdict?.usualMs).toBe(30 * minute);
  });

  test('nothing of the attempt before counts: each has a watch of its own', () => {
    const before = new Story().steps(50, 10_000).quiet(6 * minute, nothing);
    expect(before.verdict).not.toBeNull();
    expect(new Story().quiet(60 * minute, nothing).verdict).toBeNull();
  });
});

describe('the rank that stopped first', () => {
  /** Every rank writes a line a step; at the last one only those of `last` do, in this order. */
  function ranks(last: readonly number[], all: readonly number[] = [0, 1, 2, 3]) {
    const story = new Story();
    const step = (writing: readonly number[]) => {
      story.quiet(10_000, busy);
      for (const rank of writing) story.watch.rankSpoke(rank, story.nowMs);
      story.watch.progressed(story.nowMs);
      story.watch.stepPrinted();
    };
    for (let count = 0; count < 50; count += 1) step(all);
    step(last);
    return story.quiet(6 * minute, spinning).verdict;
  }

  test('is the one that did not write what the others did', () => {
    expect(ranks([0, 1, 3])?.rank).toBe(2);
  });

  test('is the one that wrote first, where all wrote the same', () => {
    expect(ranks([3, 0, 1, 2])?.rank).toBe(3);
  });

  test('is nobody, where lines do not tell ranks apart', () => {
    expect(ranks([], [])).toMatchObject({ rank: null });
    expect(ranks([0], [0])).toMatchObject({ rank: null });
  });

  test('is none of those that had nothing to say anyway', () => {
    const story = new Story();
    story.steps(2, 10_000);
    for (const rank of [1, 2, 3, 1, 2, 3]) story.watch.rankSpoke(rank, story.nowMs);
    for (let count = 0; count < 50; count += 1) {
      story.quiet(10_000, busy);
      story.watch.rankSpoke(0, story.nowMs);
      story.watch.progressed(story.nowMs);
    }
    expect(story.quiet(6 * minute, spinning).verdict).toMatchObject({ rank: null });
  });

  test('is recognized by how it wrote since it began to train', () => {
    const story = new Story();
    const lines = (...writing: readonly number[]) => {
      story.quiet(10_000, busy).watch.progressed(story.nowMs);
      for (const rank of writing) story.watch.rankSpoke(rank, story.nowMs);
    };
    // It took rank 1 an hour to load its data.
    lines(0, 1);
    for (let count = 0; count < 360; count += 1) lines(0);
    for (let count = 0; count < 50; count += 1) {
      lines(0, 1);
      story.watch.stepPrinted();
    }
    lines(0);
    expect(story.quiet(6 * minute, spinning).verdict?.rank).toBe(1);
  });

  test('is bounded: what else is written between such brackets fills no memory', () => {
    const story = new Story().steps(10, 10_000);
    for (let number = 0; number < 256; number += 1) story.watch.rankSpoke(1_000 + number, story.nowMs);
    for (let count = 0; count < 50; count += 1) {
      story.steps(1, 10_000);
      for (const rank of [0, 1]) story.watch.rankSpoke(rank, story.nowMs);
    }
    expect(story.quiet(6 * minute, spinning).verdict).toMatchObject({ rank: null });
  });
});
