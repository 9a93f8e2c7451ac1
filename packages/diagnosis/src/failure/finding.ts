/** What the failure rules find. */
import { causeFacts } from '@muster/common/causeFacts';
import { adviceOn } from '@muster/common/causeText';
import type { Blame, CauseKind, Evidence } from '@muster/common/spec/causes';
import type { RetryAdvice } from '../model.ts';

/**
 * How much a thing counts beside others, strongest first. A broken GPU makes programs, collectives and launchers complain as
 * well, mostly louder and sometimes sooner; never the other way round.
 */
export const strengths = ['hardware', 'storage', 'program', 'collective', 'exit', 'stop'] as const;
export type Strength = (typeof strengths)[number];

/** Something that went wrong, as the output shows it. */
export interface FailureFinding {
  readonly kind: CauseKind;
  readonly strength: Strength;
  /** It only follows from the end of another process: a peer was lost, a watchdog expired, a stop was requested. */
  readonly consequence: boolean;
  readonly blame: Blame;
  readonly retry: RetryAdvice;
  readonly advice: string;
  readonly evidence: Evidence;
  /** One line for users: the evidence, or its meaning. At most 500 characters. */
  readonly message: string;
}

/** What is special about a finding; the rest is what is usual for its kind. */
export type FailureVerdict = Partial<Pick<FailureFinding, 'kind' | 'blame' | 'retry' | 'advice'>>;

export function finding(
  given: Pick<FailureFinding, 'kind' | 'strength' | 'evidence'> & Partial<Omit<FailureFinding, 'kind'>>,
): FailureFinding {
  const { blame } = causeFacts[given.kind];
  const { kind, evidence } = given;
  const advice = adviceOn({ kind, evidence, message: evidence.text });
  const usual = { consequence: false, blame, advice, retry: retryAdviceOf[given.kind] };
  return { ...usual, message: given.evidence.text, ...given };
}

/** Of what happened at the same time, what stands above what. */
export function isStronger(one: FailureFinding, other: FailureFinding): boolean {
  return strengths.indexOf(one.strength) < strengths.indexOf(other.strength);
}

export function withVerdict(found: FailureFinding, verdict: FailureVerdict): FailureFinding {
  const { strength, evidence, consequence, message } = found;
  if (verdict.kind === undefined || verdict.kind === found.kind) return { ...found, ...verdict };
  return finding({ strength, evidence, consequence, message, kind: verdict.kind, ...verdict });
}

const evidenceLengthMax = 500;
/** Of what stands before the match, when the line is too long. */
const leadLength = 120;

/** The line as evidence: where it is too long, the part around what was recognised. */
export function evidenceText(line: string, at = 0): string {
  const text = line.trim();
  if (text.length <= evidenceLengthMax) return text;
  const from = at + leadLength <= evidenceLengthMax ? 0 : at - leadLength;
  return text.slice(from, from + evidenceLengthMax);
}

/** What a retry should look like, unless more is known of the single case. */
export const retryAdviceOf: Readonly<Record<CauseKind | 'loss_spike', RetryAdvice>> = {
  cuda_oom: 'after_change',
  cuda_illegal_access: 'same_node',
  gpu_suspect: 'other_node',
  gpu_hw_ecc: 'other_node',
  gpu_hw_nvlink: 'other_node',
  nccl_timeout: 'same_node',
  nccl_error: 'other_node',
  nan_loss: 'after_change',
  loss_divergence: 'rollback',
  loss_scale_exhausted: 'after_change',
  loss_spike: 'none',
  corrupt_checkpoint: 'previous_checkpoint',
  disk_full: 'after_change',
  shm_exhausted: 'after_change',
  host_oom: 'after_change',
  stopped_by_signal: 'resume',
  import_error: 'no',
  python_exception: 'no',
  rendezvous: 'same_node',
  exit_code: 'no',
  gpu_fault: 'other_node',
  node_lost: 'other_node',
  preempted: 'resume',
  time_limit: 'resume',
  image_pull: 'other_node',
  command_not_found: 'no',
  checkpoint_conflict: 'no',
  rendezvous_timeout: 'other_node',
  hung: 'resume',
  phase_unmet: 'none',
  artifact_store: 'other_node',
  artifact_refused: 'after_change',
  artifact_invalid: 'after_change',
  container_engine: 'other_node',
  cancelled: 'none',
  unknown: 'no',
};
