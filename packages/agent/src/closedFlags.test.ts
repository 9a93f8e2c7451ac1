import { verifierCommand } from '@muster/checkpoints/verifierProcess';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { expect, test } from 'vitest';
import { nvmlReaderCommand } from './gpus/nvml/command.ts';
import { guardCommand } from './guard/command.ts';

test.each([
  ['guard', guardCommand('node', 'guard.mjs')],
  ['reader of GPUs', nvmlReaderCommand('node', 'reader.mjs')],
  ['verifier of checkpoints', verifierCommand('node', 'verifier.mjs', { isUrgent: false })],
])('the %s opens no debugger', (_what, command) => {
  expect(command).toEqual(expect.arrayContaining([...closedNodeFlags]));
});
