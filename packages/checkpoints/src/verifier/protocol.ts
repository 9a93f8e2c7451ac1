/** The messages between an agent and its verifier: one JSON object per line. */
import type { VerificationDepth } from '@muster/common/checkpoints';
import type { Verification } from '../verification.ts';

/** To the verifier, which works on one after the other. */
export type VerifierRequest =
  | {
      readonly kind: 'verify';
      readonly id: number;
      readonly root: string;
      readonly name: string;
      readonly depth: VerificationDepth;
      /** null: as fast as the disk. */
      readonly bytesPerSecondMax: number | null;
    }
  /** Of what was asked for; whether it had begun or not, it is answered. */
  | { readonly kind: 'abort'; readonly id: number };

/** From the verifier. */
export type VerifierAnswer =
  | { readonly kind: 'verified'; readonly id: number; readonly verification: Verification }
  | { readonly kind: 'aborted'; readonly id: number };

/** The limit of a line in characters. Every message is far shorter; a longer line is not one of ours. */
export const verifierLineLengthMax = 1024 * 1024;
