import type { ArrayId } from '@muster/common/ids';
import type { JobSpec, JobSpecFile } from '@muster/common/spec/types';
import { describe, expect, it } from 'vitest';
import type { JobArray } from '../model.ts';
import { aJob, aSpec, jobIdOf } from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { emptySnapshot } from '../store/storeFixture.ts';
import { requireDirectoryToItself } from './directories.ts';

const submit = (draft: Draft, spec: JobSpec, place: JobArray | null = null) =>
  requireDirectoryToItself(draft, { spec, place });

const savingIn = (dir: string, more: Partial<JobSpecFile> = {}) => aSpec({ ...more, checkpoint: { dir } });

/** With jobs 1, 2, … of these specs in the queue. */
function draftWith(...specs: readonly Partial<JobSpecFile>[]): Draft {
  const state = new ClusterState({
    ...emptySnapshot,
    lastSubmitSeq: specs.length,
    activeJobs: specs.map((spec, index) => aJob(index + 1, { spec: aSpec(spec) })),
  });
  return new Draft(state);
}

const saving = (dir: string, more: Partial<JobSpecFile> = {}) => ({ ...more, checkpoint: { dir } });

describe('a directory that an active job saves in', () => {
  it('is refused to another one, with the ways out', () => {
    const draft = draftWith(saving('/runs/a'));
    expect(() => submit(draft, savingIn('/runs//a/'))).toThrow(
      `${jobIdOf(1)} (train) is queued and saves its checkpoints in /runs/a. Give this job another checkpoint.dir, or wait ` +
        `until that one has ended (muster stop ${jobIdOf(1)} ends it) and continue from it: ` +
        `muster submit --resume-from ${jobIdOf(1)}`,
    );
    expect(() => submit(draft, savingIn('/runs/b'))).not.toThrow();
    expect(() => submit(draft, aSpec())).not.toThrow();
  });

  it('is refused to one that comes after that as well, directly or not, because it would write over it', () => {
    const draft = draftWith(saving('/runs/a'), { after: [jobIdOf(1)] });
    for (const after of [jobIdOf(1), `${jobIdOf(1)}:any`, jobIdOf(2)]) {
      expect(() => submit(draft, savingIn('/runs/a', { after: [after] }))).toThrow(
        `${jobIdOf(1)} (train) is queued and saves its checkpoints in /runs/a, which this job would write over when it starts ` +
          'after it. Give this job another checkpoint.dir, or submit it when that one has ended, to continue from its ' +
          `checkpoints: muster submit --resume-from ${jobIdOf(1)}`,
      );
      expect(() => submit(draft, savingIn('/runs/b', { after: [after] }))).not.toThrow();
    }
  });

  it('is that of the same draft as well', () => {
    const draft = draftWith();
    draft.addJob(aJob(1, { spec: savingIn('/runs/a') }));
    expect(() => submit(draft, savingIn('/runs/a'))).toThrow(jobIdOf(1));
  });

  it('is free once that has ended', () => {
    const draft = draftWith(saving('/runs/a'));
    const job = draft.job(jobIdOf(1));
    if (job === undefined) throw new Error('it is there');
    draft.putJob({ ...job, state: { kind: 'succeeded', endedAtMs: 1 } });
    expect(() => submit(draft, savingIn('/runs/a'))).not.toThrow();
    draft.apply();
    expect(() => submit(new Draft(draft.base), savingIn('/runs/a'))).not.toThrow();
    expect(draft.base.directories.isEmpty).toBe(true);
  });

  it('is another one behind another volume', () => {
    const container = (source: string) => ({ image: 'i', volumes: [`${source}:/ckpt`] });
    const draft = draftWith(saving('/ckpt', container('/disk/a')));
    expect(() => submit(draft, savingIn('/ckpt', container('/disk/b')))).not.toThrow();
    expect(() => submit(draft, savingIn('/disk/a'))).toThrow(jobIdOf(1));
  });
});

describe('an array', () => {
  const member = (index: number): JobArray => ({ id: 'arr_000000000001' as ArrayId, index, size: 3 });

  it('has its members side by side, and each of them once', () => {
    const spec = savingIn('/runs/a-{array_index}', { array: 3 });
    const draft = draftWith();
    for (const index of [0, 1]) draft.addJob(aJob(index + 1, { spec, array: member(index) }));
    expect(() => submit(draft, spec, member(2))).not.toThrow();
    expect(() => submit(draft, spec, member(1))).toThrow(`${jobIdOf(2)} (train) is queued`);
    expect(() => submit(draft, spec)).toThrow('in /runs/a-0.');
    expect(() => submit(draft, savingIn('/runs/a-1'))).toThrow(jobIdOf(2));
  });
});
