/** What an alert would fire for if it were set: one look at all that it would look at. */
import type { AlertDefinition, AlertEpisode } from '@muster/common/alerts';
import { clusterSubject } from '@muster/common/eventKinds';
import type { CheckedCondition } from '../alerts/condition.ts';
import { looksAtJob, looksAtNode } from '../alerts/reach.ts';
import type { Job } from '../model.ts';
import { nextRound } from '../work/inOrder.ts';
import {
  type AlertSources,
  type AlertSubject,
  alertMessage,
  clusterSubjectOf,
  jobSubject,
  nodeSubject,
} from './subjects.ts';

export interface TriedAlert {
  readonly definition: AlertDefinition;
  readonly condition: CheckedCondition;
  readonly owner: string;
  /** The job that the scope names, where it has ended. */
  readonly endedJob: Job | null;
  /** When an attempt was last allocated, wall clock. */
  readonly lastStartAtMs: number;
}

export interface WouldFire {
  /** The first of them, without ids: nothing has begun to fire. */
  readonly episodes: readonly AlertEpisode[];
  /** All of them. */
  readonly count: number;
}

/** More than anybody reads. */
const episodesMax = 100;
/** Looked at between two rounds of the event loop: some milliseconds. */
const subjectsPerRound = 50;

export async function wouldFire(sources: AlertSources, tried: TriedAlert): Promise<WouldFire> {
  const { definition, condition } = tried;
  const episodes: AlertEpisode[] = [];
  let count = 0;
  let looked = 0;
  for (const subject of subjectsOf(sources, tried)) {
    looked += 1;
    if (looked % subjectsPerRound === 0) await nextRound();
    if (subject.holds(condition) !== true) continue;
    count += 1;
    if (episodes.length < episodesMax) episodes.push(episodeOf(definition, subject, sources.wallMs()));
  }
  return { episodes, count };
}

function* subjectsOf(
  sources: AlertSources,
  { definition: { scope }, owner, endedJob, lastStartAtMs }: TriedAlert,
): Generator<AlertSubject> {
  const { jobs, nodes, people } = sources.state;
  switch (scope.kind) {
    case 'job':
      for (const job of [...jobs.values(), ...(endedJob === null ? [] : [endedJob])])
        if (looksAtJob(scope, owner, people, job))
          yield jobSubject(sources, job, job === endedJob ? 0 : null);
      return;
    case 'node':
      for (const node of nodes.values()) if (looksAtNode(scope, node.name)) yield nodeSubject(sources, node);
      return;
    default:
      yield clusterSubjectOf(sources, clusterSubject, lastStartAtMs);
  }
}

function episodeOf(definition: AlertDefinition, subject: AlertSubject, nowMs: number): AlertEpisode {
  return {
    id: '',
    alert: definition.name,
    subject: subject.id,
    subjectName: subject.name,
    project: subject.project,
    message: alertMessage(definition, subject),
    firedAtMs: nowMs,
    notifiedAtMs: null,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
  };
}
