/** The parts of the coordinator that sessions of agents work with. */
import type { NodeName, RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TraceSampler } from '@muster/common/traceContext';
import type { OrphanTasks } from '../agents/orphans.ts';
import type { AgentRegistry } from '../agents/registry.ts';
import type { StatusPacer } from '../agents/statusPacer.ts';
import type { TaskAccounts } from '../agents/taskAccounts.ts';
import type { AlertWatch } from '../alertWatch/alertWatch.ts';
import type { LeaseGrants } from '../leases/leases.ts';
import type { Proofs } from '../leases/proofs.ts';
import type { NewerToken } from '../leases/terms.ts';
import type { AgentAccount } from '../leases/testimony.ts';
import type { Loop } from '../loop.ts';
import type { Duplicates } from '../reconcilers/duplicates.ts';
import type { HangWatch } from '../reconcilers/hangWatch.ts';
import type { TimeLimits } from '../reconcilers/timeLimits.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { JoinParts } from './join.ts';
import type { LogUploadParts } from './logUploads.ts';
import type { NodeClockParts } from './nodeClocks.ts';
import type { RowUploadParts } from './rowUploads.ts';
import type { TelemetryUploadParts } from './telemetryUploads.ts';
import type { WithoutSpaceParts } from './withoutSpace.ts';

export interface AgentHubParts
  extends JoinParts,
    NodeClockParts,
    LogUploadParts,
    RowUploadParts,
    TelemetryUploadParts,
    WithoutSpaceParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob' | 'readOutcomes'>;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
  /** Length of a lease where the job does not set it. */
  readonly leaseMs: number;
  readonly leases: LeaseGrants;
  /** Which traces are recorded. null: none is. */
  readonly isSampled: TraceSampler | null;
  /** Of this run of the coordinator, with the proof that a node was welcomed in it. */
  readonly term: (node: NodeName) => { readonly term: number; readonly termProof: string };
  /** Examines every Hello before it has any effect. @returns what it claims without proof; null: nothing */
  readonly checkAccount: (account: AgentAccount) => string | null;
  /** Is told of a continuity token that proves that the store was restored from an old copy. */
  readonly noteNewerToken: (node: NodeName, token: NewerToken) => void;
  readonly orphans: OrphanTasks;
  readonly taskAccounts: TaskAccounts;
  readonly pacer: StatusPacer;
  readonly timeLimits: TimeLimits;
  readonly hangWatch: HangWatch;
  readonly alerts: Pick<AlertWatch, 'noteSample'>;
  readonly duplicates: Duplicates;
  readonly random: RandomBytes;
  /** Of the store, for continuity tokens. */
  readonly proofs: Proofs;
}
