/**
 * What becomes of an alert for one job, one node or the cluster when its condition is looked at. Pure: what it was before, what the
 * condition says, and the moment are arguments.
 *
 *     inactive ──holds──► pending ──has held for `forMs`──► firing ──holds no longer──► inactive
 *         └───────────── without `forMs` ─────────────────────┘
 *
 * A condition that depends on something unknown neither begins nor ends anything. A firing is stored with its event in one commit,
 * and there is at most one for each subject, so that an episode fires once however often it is looked at. What is pending is in
 * memory only: after a restart it counts from the beginning.
 */
import type { AlertEpisode } from '@muster/common/alerts';

export interface AlertMoment {
  /** For decisions about how long a condition has held. */
  readonly monotonicMs: number;
  /** For when somebody is notified again. */
  readonly wallMs: number;
}

export type AlertState =
  | { readonly kind: 'inactive' }
  /** Monotonic. */
  | { readonly kind: 'pending'; readonly sinceMs: number }
  | { readonly kind: 'firing'; readonly episode: AlertEpisode };

export const inactive: AlertState = { kind: 'inactive' };

export interface EpisodeRule {
  readonly forMs: number;
  readonly repeatMs: number | null;
  /** Wall clock. null: it is not silenced. */
  readonly silencedUntilMs: number | null;
}

export type AlertStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'pending'; readonly sinceMs: number }
  | { readonly kind: 'inactive' }
  | { readonly kind: 'fire'; readonly isSilenced: boolean }
  /** @param isSilenced: nobody was notified that it fires, so nobody has to know that it ended */
  | { readonly kind: 'resolve'; readonly isSilenced: boolean }
  /** Notifies again, or for the first time if it was silenced when it began to fire. */
  | { readonly kind: 'repeat' };

/** @param holds null: it depends on something that is unknown */
export function stepOf(
  rule: EpisodeRule,
  state: AlertState,
  holds: boolean | null,
  now: AlertMoment,
): AlertStep {
  const isSilenced = rule.silencedUntilMs !== null && now.wallMs < rule.silencedUntilMs;
  switch (state.kind) {
    case 'inactive':
      if (holds !== true) return { kind: 'none' };
      return rule.forMs > 0 ? { kind: 'pending', sinceMs: now.monotonicMs } : { kind: 'fire', isSilenced };
    case 'pending':
      if (holds === false) return { kind: 'inactive' };
      if (holds === null || now.monotonicMs - state.sinceMs < rule.forMs) return { kind: 'none' };
      return { kind: 'fire', isSilenced };
    case 'firing': {
      const { notifiedAtMs, acknowledgedAtMs } = state.episode;
      if (holds === false) return { kind: 'resolve', isSilenced: notifiedAtMs === null };
      if (isSilenced || acknowledgedAtMs !== null) return { kind: 'none' };
      if (notifiedAtMs === null) return { kind: 'repeat' };
      const isDue = rule.repeatMs !== null && now.wallMs - notifiedAtMs >= rule.repeatMs;
      return isDue ? { kind: 'repeat' } : { kind: 'none' };
    }
    default: {
      const never: never = state;
      return never;
    }
  }
}
