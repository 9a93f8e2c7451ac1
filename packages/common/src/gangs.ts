/** The words of gangs: where nodes reach each other, what was measured between them, and how long a task may run. */
import type { Blame, CauseKind } from './spec/causes.ts';

/** One address of a node. */
export interface Endpoint {
  readonly address: string;
  /** The network it is in, `10.1.0.0/16`. null: unknown. */
  readonly network: string | null;
  readonly interface: string | null;
  readonly speedMbps: number | null;
  /** An active RDMA device is behind it. */
  readonly rdma: boolean;
}

/** Another node of the gang, to be reached at this address and port. */
export interface Peer {
  readonly nodeRank: number;
  readonly node: string;
  readonly address: string;
  readonly port: number;
}

/** Where a rendezvous takes place. */
export interface Master {
  readonly addr: string;
  readonly port: number;
}

/** "Try the paths to these peers." */
export interface PathCheck {
  /** 1, 2, 3 … within the attempt: another choice of addresses is another round. */
  readonly round: number;
  /** Of every node of the gang, by node rank. */
  readonly addresses: readonly string[];
  readonly peers: readonly Peer[];
  /** Measure them as well; null: no. */
  readonly preflight: { readonly master: Master; readonly timeoutMs: number } | null;
}

/** What one node found about the paths of a round. */
export interface PathFindings {
  readonly round: number;
  readonly paths: readonly PathResult[];
  /** null: was not asked for. */
  readonly preflight: PreflightResult | null;
}

export interface PathResult {
  readonly nodeRank: number;
  /** Why the peer could not be reached. null: it could. */
  readonly error: string | null;
  readonly roundTripUs: number;
}

export const preflightBackends = ['nccl', 'gloo', 'tcp'] as const;
export type PreflightBackend = (typeof preflightBackends)[number];

export interface PreflightResult {
  /** Why there are no measurements. null: there are. */
  readonly error: string | null;
  readonly backend: PreflightBackend;
  /** Between this node and others, as this node measured it. */
  readonly pairs: readonly { readonly nodeRank: number; readonly bytesPerS: number }[];
  /** Algorithm bandwidth of the all-reduce over the whole gang. null: none was done. */
  readonly allReduceBytesPerS: number | null;
}

export const failureSources = ['error_file', 'log', 'exit', 'lease', 'kernel', 'artifacts'] as const;

/** The first thing that went wrong on one node. Which node's was first decides the cause of the attempt. */
export interface TaskFailure {
  /**
   * Where it is known from: a torchelastic error file, the output, the exit alone, its node, which ended it because it had no
   * lease, the log of the kernel, or its artifacts, which could not be kept after a good end.
   */
  readonly source: (typeof failureSources)[number];
  /** It only follows from the end of another task: a peer's connection was lost, a watchdog ran out, it was asked to stop. */
  readonly consequence: boolean;
  /** Global rank. null: unknown. */
  readonly rank: number | null;
  /** One line, at most 500 characters. */
  readonly message: string;
  /** null: the node does not know one; the exit determines it. */
  readonly kind: CauseKind | null;
  readonly blame: Blame | null;
  /** Line of the output, from 1. null: it is not in the output, or its number is not known. */
  readonly line: number | null;
  /** CLOCK_BOOTTIME of the node. */
  readonly atBoottimeMs: number;
}

/** Why the outputs of a task are not in its store, although its program has ended well. null: that is not so. */
export function lossOfOutputs({ failure }: { readonly failure: TaskFailure | null }): TaskFailure | null {
  return failure?.source === 'artifacts' ? failure : null;
}

/** The newest measurement of a path, by a preflight. */
export interface PathBandwidth {
  readonly peer: string;
  readonly bytesPerS: number;
  /** Wall clock, for display. */
  readonly measuredAtMs: number;
  readonly backend: PreflightBackend;
}
