import type { CheckpointVerdict, VerificationDepth } from '@muster/common/checkpoints';

export interface VerifyOptions {
  readonly depth: VerificationDepth;
  readonly signal?: AbortSignal;
  /** Reads no faster than this, ≥ 1; default: as fast as the disk. */
  readonly bytesPerSecondMax?: number;
}

/** What was found out about one checkpoint; field by field as in `CheckpointFacts`. */
export interface Verification {
  readonly verdict: Exclude<CheckpointVerdict, 'gone'>;
  /** null with `unverified`. */
  readonly depth: VerificationDepth | null;
  readonly format: string;
  readonly bytes: number;
  readonly files: number;
  /** From its name, else from what it holds; null: neither has it. */
  readonly step: number | null;
  /** `sha256:` and 64 hexadecimal digits over names, sizes and contents of all files; null unless every byte was read. */
  readonly digest: string | null;
  /** As in `CheckpointCandidate`: of what was verified. Another one there means that more was written since. */
  readonly version: string;
  readonly problem: string | null;
  /** As `fingerprintOf` makes them. Absent: it changed, or could not be read. */
  readonly fingerprint?: string;
  readonly ends?: readonly string[];
}

/** Nothing at all could be found out about it. */
export function unverifiable(problem: string): Verification {
  const nothing = {
    depth: null,
    format: 'unknown',
    bytes: 0,
    files: 0,
    step: null,
    digest: null,
    version: '',
  };
  return { verdict: 'unverified', ...nothing, problem };
}
