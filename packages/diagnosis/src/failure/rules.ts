/**
 * The signatures of failures, as data: what programs, CUDA, NCCL, PyTorch, launchers and the kernel write when something
 * breaks. Exceptions in general and the reports of launchers have a form of their own: exceptions.ts, launchers.ts.
 *
 * A pattern is as narrow as the real text allows. Words such as "error", "timeout" or "out of memory" alone stand in the
 * settings and warnings of healthy programs. And its time grows with the length of a line, never with its square, because
 * lines are written by whom they accuse: hostileLines.test.ts measures it.
 */
import { collectiveRules } from './collectiveRules.ts';
import { machineRules } from './machineRules.ts';
import { programRules } from './programRules.ts';
import type { SignatureRule } from './signature.ts';

/** The first that matches a line counts. */
export const signatureRules: readonly SignatureRule[] = [
  ...machineRules,
  ...programRules,
  ...collectiveRules,
];

/** It ends what the launcher runs: whatever fails after this fails because of it. */
export const stopNotice = 'told to stop';
