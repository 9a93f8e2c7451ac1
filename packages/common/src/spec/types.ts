/** The shapes of a job spec. Importing this file costs nothing at run time: types only, the table and zod stay out. */
import type { jobFields } from './fields.ts';
import type { FileOf, SpecOf } from './kinds.ts';

export type { Volume } from './forms.ts';

/** A job spec as users write it: snake_case keys, durations as `90s`, volumes as `/data:/data:ro`. */
export type JobSpecFile = FileOf<typeof jobFields>;

/**
 * A job spec checked and complete: what coordinator, scheduler and agent work with. Immutable once submitted. The table in
 * `fields.ts` explains each setting; times are in milliseconds, sizes in MB of 1,048,576 bytes.
 */
export type JobSpec = SpecOf<typeof jobFields>;

export type JobResources = JobSpec['resources'];
export type JobCheckpoint = JobSpec['checkpoint'];
export type Launcher = JobSpec['launcher'];
export type { PhaseSpec } from './phaseFields.ts';

/** One thing wrong with a spec, in words for the person who wrote it. */
export interface SpecProblem {
  /** Where in the spec: `resources.gpus`, `volumes[0]`, `env["1X"]`; empty for the whole. */
  readonly path: string;
  /** 1-based place in the file; null when the value came from a flag or an API call. */
  readonly line: number | null;
  readonly column: number | null;
  /** The flag that has the problem, such as `--nodes`; null: no flag has it. */
  readonly flag: string | null;
  /** What is wrong: `unknown key`, `got "high"`. Never empty. */
  readonly message: string;
  /** What was expected, or what to do instead. */
  readonly expected: string | null;
  /** A likely right key or value, as one would write it. */
  readonly suggestion: string | null;
}

export type SpecResult =
  | { readonly ok: true; readonly spec: JobSpec }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };
