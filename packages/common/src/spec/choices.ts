/** Settings that take one of a few words. The lists are for the schema and for whoever offers them (completion). */

export const launchers = ['torchrun', 'env', 'mpi-hostfile'] as const;
/**
 * `torchrun`: the command once per node, with what torchrun and scripts alike read. `env`: once per GPU, with RANK and
 * LOCAL_RANK. `mpi-hostfile`: on node rank 0 only, with the names of a file that lists the nodes.
 */
export type Launcher = (typeof launchers)[number];

export const topologies = ['preferred', 'required'] as const;
/** Whether a gang prefers to be under few switches, or runs under one switch of the nearest level or not at all. */
export type Topology = (typeof topologies)[number];

export const leaseExpiryActions = ['freeze', 'kill'] as const;
/** What a node does to a task whose lease has run out: it may go on later where it was, or is gone for good. */
export type LeaseExpiryAction = (typeof leaseExpiryActions)[number];

export const nodeLossActions = ['requeue', 'hold'] as const;
/** `hold`: never fenced, and never run elsewhere without proof that the lost node is dead. */
export type NodeLossAction = (typeof nodeLossActions)[number];

export const divergenceActions = ['warn', 'stop'] as const;
/** `stop`: the attempt ends with that cause, and begins again before the divergence if the retry budget lets it. */
export type DivergenceAction = (typeof divergenceActions)[number];

export const hangActions = ['warn', 'restart'] as const;
/** `restart`: the attempt ends as hung, and begins again from its last checkpoint. */
export type HangAction = (typeof hangActions)[number];

export const stopSignals = ['SIGTERM', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGHUP'] as const;
/** The first signal of a stop; SIGKILL follows after the grace. */
export type StopSignal = (typeof stopSignals)[number];

export const bestModes = ['min', 'max'] as const;
