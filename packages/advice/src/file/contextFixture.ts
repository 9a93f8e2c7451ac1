/** Training contexts as a test needs them, through the real checks. */

import { formatPath } from '@muster/common/spec/path';
import type { AdviceTask } from '../actionShape.ts';
import type { TrainingContext } from '../contextFields.ts';
import { gpuTable } from '../gpus.ts';
import { readContext } from './readContext.ts';

/** @param given what stands below `training_context` */
export function aTrainingContext(
  given: Readonly<Record<string, unknown>>,
  task: AdviceTask = 'configure_distributed',
): TrainingContext {
  const result = readContext({ training_context: given }, task, gpuTable);
  if (!result.ok) throw new Error(JSON.stringify(result.findings));
  return result.context;
}

/** `place: message; expected …` of each problem. */
export function problemsOfContext(
  value: unknown,
  task: AdviceTask = 'configure_distributed',
): readonly string[] {
  const result = readContext(value, task, gpuTable);
  if (result.ok) return [];
  return result.findings.map(({ path, message, expected, suggestion }) =>
    [`${formatPath(path)}: ${message}`, expected, suggestion].filter((each) => each !== null).join('; '),
  );
}
