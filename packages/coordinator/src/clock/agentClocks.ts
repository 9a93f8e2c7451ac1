/**
 * When the agents' boots began, in trusted time. An agent that stayed up while the coordinator did not run is a witness of
 * how long that was: its BOOTTIME kept counting.
 */
import type { NodeName } from '@muster/common/ids';
import { medianOf } from './clockState.ts';

/** Difference that an agent's BOOTTIME may drift between two contacts. */
const driftMs = 2_000;

interface AgentClock {
  readonly bootId: string;
  /** Believed time less the agent's BOOTTIME at its last contact that agreed, milliseconds. */
  readonly startedWallMs: number;
}

type StoredAgentClocks = Readonly<Record<string, readonly [bootId: string, startedWallMs: number]>>;

export class AgentClocks {
  private readonly known = new Map<NodeName, AgentClock>();
  /** The present time by each agent that was heard since the start or the last step: trusted time of its boot plus BOOTTIME. */
  private readonly heard = new Map<NodeName, { readonly wallMs: number; readonly atMonoMs: number }>();
  private hasChanged = false;

  constructor(stored: StoredAgentClocks = {}) {
    for (const [node, [bootId, startedWallMs]] of Object.entries(stored))
      this.known.set(node as NodeName, { bootId, startedWallMs });
  }

  /**
   * Notes one message of an agent.
   * @param sent boot and BOOTTIME of the node when it sent the message
   * @param mayLearn false while the trusted time is in doubt: what is learned then would confirm it
   */
  note(
    node: NodeName,
    sent: { readonly bootId: string; readonly boottimeMs: number },
    now: { readonly trustedWallMs: number; readonly monotonicMs: number },
    mayLearn: boolean,
  ): void {
    const known = this.known.get(node);
    const startedWallMs = now.trustedWallMs - sent.boottimeMs;
    if (known?.bootId === sent.bootId) {
      const wallMs = known.startedWallMs + sent.boottimeMs;
      this.heard.set(node, { wallMs, atMonoMs: now.monotonicMs });
      // An agent that differs keeps what was known of it: it may be the witness of a gap.
      if (Math.abs(startedWallMs - known.startedWallMs) > driftMs) return;
    } else this.heard.delete(node);
    if (!mayLearn) return;
    if (known?.bootId !== sent.bootId || Math.abs(startedWallMs - known.startedWallMs) > driftMs / 4)
      this.hasChanged = true;
    else return;
    this.known.set(node, { bootId: sent.bootId, startedWallMs });
  }

  /** When this boot of a node began, in trusted time. Null if that was not learned. */
  startedWallMs(node: NodeName, bootId: string): number | null {
    const known = this.known.get(node);
    return known?.bootId === bootId ? known.startedWallMs : null;
  }

  /** The present time by the median of the agents that were heard. Null if none was. */
  medianWallMs(monotonicMs: number): number | null {
    return medianOf([...this.heard.values()].map(({ wallMs, atMonoMs }) => wallMs + monotonicMs - atMonoMs));
  }

  /** Forgets what was learned by a trusted time that has been set since. */
  forget(): void {
    this.known.clear();
    this.heard.clear();
    this.hasChanged = true;
  }

  removed(node: NodeName): void {
    this.hasChanged ||= this.known.delete(node);
    this.heard.delete(node);
  }

  /** What has to be stored, as JSON. Null if nothing has changed since the last call. */
  takeChanges(): string | null {
    if (!this.hasChanged) return null;
    this.hasChanged = false;
    const stored: StoredAgentClocks = Object.fromEntries(
      [...this.known].map(([node, { bootId, startedWallMs }]) => [node, [bootId, Math.round(startedWallMs)]]),
    );
    return JSON.stringify(stored);
  }
}
