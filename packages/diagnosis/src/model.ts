/** The types that the readers of this package share. */
import type { Blame, CauseKind, Evidence } from '@muster/common/spec/causes';

/** One line of a program's output, as the readers get it. */
export interface Line {
  /** Without colours, without the prefix of a launcher, without line feeds or carriage returns; cut if it is too long. */
  readonly text: string;
  /** From 1, counted by line feeds only: several lines that carriage returns part have one number. */
  readonly number: number;
  /** The global rank, where the launcher's prefix has it. */
  readonly rank: number | null;
}

export const frameworks = [
  'nanogpt',
  'litgpt',
  'hf_trainer',
  'lightning',
  'deepspeed',
  'megatron',
  'torchtitan',
  'torchtune',
  'fairseq',
  'maxtext',
  'nanotron',
  'verl',
  'modded_nanogpt',
  'plain',
  'json_lines',
] as const;
export type Framework = (typeof frameworks)[number];

/** One line of metrics, under the names that its program uses where it names them. */
export interface MetricRow {
  readonly framework: Framework;
  readonly line: number;
  readonly rank: number | null;
  /** null: the program printed that it does not know the value, or that it is not a number. */
  readonly values: Readonly<Record<string, number | string | null>>;
}

export const diagnosisStates = ['running', 'completed', 'failed', 'stopped'] as const;

export const retryAdvices = [
  'no',
  'after_change',
  'same_node',
  'other_node',
  'previous_checkpoint',
  'rollback',
  'resume',
  'none',
] as const;
export type RetryAdvice = (typeof retryAdvices)[number];

/** Everything that a log shows. `muster diagnose -o json` prints it. */
export interface Diagnosis {
  /** `running`: the output shows no end. */
  readonly state: (typeof diagnosisStates)[number];
  /** null: nothing went wrong. `unknown`: it failed, and nothing shows why. `loss_spike` is worth an alert and no more. */
  readonly cause: CauseKind | 'loss_spike' | null;
  readonly blame: Blame | null;
  readonly evidence: Evidence | null;
  readonly retry: RetryAdvice | null;
  /** One sentence for people; null: there is nothing to do. */
  readonly advice: string | null;
  readonly framework: Framework | null;
  readonly metrics: {
    readonly rows: number;
    readonly first: MetricRow['values'] | null;
    readonly last: MetricRow['values'] | null;
  };
}
