/**
 * The job spec. This index loads zod and yaml: it is for the command line and the coordinator. Whoever only handles
 * checked specs imports `types.ts`, `causes.ts` and `serialize.ts` alone.
 */
export {
  type CauseKind,
  causeKinds,
  defaultRetryCauses,
  isCauseKind,
  type RetryableCause,
  retryableCauses,
} from './causes.ts';
export { formatDuration, parseDurationMs } from './duration.ts';
export { formatProblems, type Paint, type SpecSource } from './format.ts';
export { specBytesMax } from './limits.ts';
export type { Environment, SpecOverrides } from './overrides.ts';
export { type ParseOptions, parseJobSpec } from './parse.ts';
export { jobSpecFromFlags } from './resolve.ts';
export { jobSpecJsonSchema } from './schema.ts';
export { decodeJobSpec, encodeJobSpec, jobSpecToFile } from './serialize.ts';
export { parseSizeMb } from './size.ts';
export type { JobSpec, JobSpecFile, SpecProblem, SpecResult, Volume } from './types.ts';
export { validateJobSpec } from './validate.ts';
