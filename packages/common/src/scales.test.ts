import { expect, test } from 'vitest';
import { causeOf } from './cause.ts';
import { scaleTexts } from './scales.ts';
import type { AttemptView, JobView } from './views.ts';

function jobOf(spec: Readonly<Record<string, unknown>>, scales: Partial<JobView>) {
  const cause = causeOf('cuda_oom', 'CUDA out of memory');
  const attempts: readonly Partial<AttemptView>[] = [{ number: 1, cause }];
  return {
    spec: { name: 'train', ...spec },
    batchScale: 1,
    lrScale: 1,
    attempts: attempts as readonly AttemptView[],
    ...scales,
  };
}

const params = { batch_size: 32, lr: 3e-4 };

test('a parameter of the command is scaled there', () => {
  const command = ['sh', '-c', 'train.py --batch={batch_size} --lr={lr}'];
  expect(scaleTexts(jobOf({ command, params }, { batchScale: 0.5, lrScale: 0.1 * 0.1 }))).toEqual({
    lines: [
      'batch_size 16 in the command (32 × 0.5) after cuda_oom',
      'lr 0.000003 in the command (0.0003 × 0.01)',
    ],
    hints: [],
  });
  expect(scaleTexts(jobOf({ command, params }, {}))).toEqual({ lines: [], hints: [] });
});

test('a scale is only offered to a program whose command does not have the parameter', () => {
  const command = ['train.py', '--batch=32', '{resume:--resume=}'];
  for (const spec of [{ command }, { command, params }, { command: ['train.py', '{batch_size}'] }]) {
    const { lines, hints } = scaleTexts(jobOf(spec, { batchScale: 0.25 }));
    expect(lines).toEqual(['MUSTER_BATCH_SCALE=0.25 offered after cuda_oom']);
    expect(hints).toEqual([expect.stringContaining('--batch_size={batch_size}')]);
  }
  const { lines, hints } = scaleTexts(jobOf({ command }, { lrScale: 0.1 }));
  expect(lines).toEqual(['MUSTER_LR_SCALE=0.1 offered']);
  expect(hints).toEqual([expect.stringContaining('--lr={lr}')]);
});
