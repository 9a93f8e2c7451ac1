import { expect, test } from 'vitest';
import { causeFacts } from './causeFacts.ts';
import { causeKinds } from './spec/causes.ts';
import { jobSpecJsonSchema } from './spec/validate.ts';

test('every cause has facts, and nothing else has', () => {
  expect(Object.keys(causeFacts).sort()).toEqual([...causeKinds].sort());
});

test.each(causeKinds)('the advice for %s is whole sentences of a length that people read', (kind) => {
  const { advice } = causeFacts[kind];
  expect(advice).toMatch(/^[A-Z].*\.$/);
  expect(advice.length).toBeGreaterThan(30);
  expect(advice.length).toBeLessThan(220);
});

/** `retry.lr_scale`, `resources.shm_mb`, `on_hang.times` and their like. */
const specKey =
  /\b(?:retry|resources|checkpoint|on_hang)\.([a-z_]+)|\b([a-z]+_[a-z_]+)\b(?= in the spec|\))/g;

test('keys of the job file that advice names exist', () => {
  const schema = JSON.stringify(jobSpecJsonSchema());
  const named = Object.values(causeFacts).flatMap(({ advice }) =>
    [...advice.matchAll(specKey)].map((match) => match[1] ?? match[2] ?? ''),
  );
  expect(named).toContain('shm_mb');
  for (const key of named) expect(schema).toContain(`"${key}":`);
});

test('what is nobody of the job is not blamed on it', () => {
  for (const kind of ['node_lost', 'gpu_fault', 'gpu_hw_ecc', 'preempted', 'image_pull'] as const)
    expect(causeFacts[kind].blame).not.toBe('job');
  for (const kind of ['cuda_oom', 'import_error', 'exit_code', 'nan_loss'] as const)
    expect(causeFacts[kind].blame).toBe('job');
  expect(causeFacts.unknown.blame, 'never a guess').toBe('unknown');
});
