/** What conditions are evaluated for: a job, a node, the cluster. Values are looked up when a condition needs them, once in a pass. */
import type { AlertDefinition } from '@muster/common/alerts';
import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { CheckedCondition } from '../alerts/condition.ts';
import { type AroundCluster, clusterFacts, jobFacts, nodeFacts } from '../alerts/facts.ts';
import { messageText } from '../alerts/messages.ts';
import { type FactOf, type FactValue, namesOfEvery, namesOfKind } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';
import { currentAttempt, type Job, type Node } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import { freshGpusOf, readingFreshMs } from '../telemetry/jobGpus.ts';
import type { TelemetryStore } from '../telemetry/telemetryStore.ts';
import { liveTraining } from '../views.ts';

export interface AlertSources {
  readonly state: ClusterState;
  readonly agents: Pick<AgentRegistry, 'isSilent' | 'silentForMs'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  readonly telemetry: Pick<TelemetryStore, 'newest'>;
  /** Of the machine of the coordinator. */
  readonly machine: Pick<AroundCluster, 'diskFreePercent' | 'certificateExpiresAtMs'>;
  readonly wallMs: () => number;
}

export interface AlertSubject {
  /** A job's id, a node's name, or `cluster`. */
  readonly id: string;
  readonly name: string;
  readonly project: string | null;
  /** An event that is not before the end of the job: what is unknown will not become known. null: it has not ended. */
  readonly endedSeq: number | null;
  readonly factOf: FactOf;
  /** @returns null: it depends on something unknown */
  readonly holds: (condition: CheckedCondition) => boolean | null;
}

function subject(
  facts: Omit<AlertSubject, 'factOf' | 'holds'>,
  look: (name: string) => FactValue,
): AlertSubject {
  const known = new Map<string, FactValue>();
  const factOf = (name: string) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const value = look(name);
    known.set(name, value);
    return value;
  };
  const values = new SubjectValues(factOf);
  const holds = (condition: CheckedCondition) => condition.evaluate(values);
  return { ...facts, factOf, holds };
}

/** @param endedSeq an event that is not before its end. null: it has not ended */
export function jobSubject(
  { state, taskStatus, telemetry, wallMs }: AlertSources,
  job: Job,
  endedSeq: number | null,
): AlertSubject {
  const around = {
    nowMs: wallMs(),
    training: once(() => liveTraining(job, taskStatus)),
    hangs: () =>
      (currentAttempt(job)?.tasks ?? []).some(
        ({ nodeRank }) => taskStatus.of({ jobId: job.id, attempt: job.lastAttempt, nodeRank }).hang !== null,
      ),
    gpus: once(() => freshGpusOf(job, state.nodes, telemetry, wallMs())),
  };
  return subject({ id: job.id, name: ownName(job), project: job.spec.project, endedSeq }, (name) =>
    isNameOf(jobFacts, name) ? jobFacts[name](job, around) : null,
  );
}

export function nodeSubject({ state, agents, telemetry, wallMs }: AlertSources, node: Node): AlertSubject {
  const readings = once(() => telemetry.newest(node.name));
  const isFresh = ({ atMs }: { readonly atMs: number }) => wallMs() - atMs <= readingFreshMs;
  const around = {
    nowMs: wallMs(),
    isSilent: agents.isSilent(node.name),
    lastContactAgoMs: agents.silentForMs(node.name),
    tasks: () => heldTasks(state.jobs.values()).get(node.name)?.length ?? 0,
    host: () => {
      const { host } = readings();
      return host !== null && isFresh(host) ? host : null;
    },
    gpus: () => readings().gpus.filter(isFresh),
  };
  return subject({ id: node.name, name: node.name, project: null, endedSeq: null }, (name) =>
    isNameOf(nodeFacts, name) ? nodeFacts[name](node, around) : null,
  );
}

/** @param lastStartAtMs when an attempt was last allocated, wall clock */
export function clusterSubjectOf(sources: AlertSources, id: string, lastStartAtMs: number): AlertSubject {
  const { state, agents, machine, wallMs } = sources;
  const around = {
    ...machine,
    nowMs: wallMs(),
    lastStartAtMs,
    jobs: () => state.jobs.values(),
    nodes: () => state.nodes.values(),
    queuedJobs: () => state.groups.queuedCount(),
    silentNodes: () => [...state.nodes.keys()].filter((node: NodeName) => agents.isSilent(node)).length,
  };
  return subject({ id, name: id, project: null, endedSeq: null }, (name) =>
    isNameOf(clusterFacts, name) ? clusterFacts[name](around) : null,
  );
}

/** With the values of this moment. */
export function alertMessage(
  { name, severity, message, scope }: AlertDefinition,
  about: AlertSubject,
): string {
  const ofEvery: Readonly<Record<string, string>> = { alert: name, severity, subject: about.id };
  return messageText(message, (each) => ofEvery[each] ?? about.factOf(each), {
    ...namesOfKind[scope.kind],
    ...namesOfEvery,
  });
}

function isNameOf<Table extends object>(table: Table, name: string): name is keyof Table & string {
  return Object.hasOwn(table, name);
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
