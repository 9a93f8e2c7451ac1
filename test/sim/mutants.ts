/**
 * The product with one of its rules removed. A check counts only after it has failed on such a build: each entry names the
 * rule, the functions that are replaced to remove it, and the guarantees whose checks must then fail.
 */

import type * as agentSessionModule from '@muster/agent/session/session';
import type * as recordsModule from '@muster/agent/tasks/records';
import type * as runnerModule from '@muster/agent/tasks/runner';
import type * as stepModule from '@muster/agent/tasks/step';
import type * as desiredModule from '@muster/coordinator/agents/desired';
import type * as sessionModule from '@muster/coordinator/agents/session';
import type * as conditionsModule from '@muster/coordinator/commands/conditions';
import type * as nodesModule from '@muster/coordinator/commands/nodes';
import type * as watchModule from '@muster/coordinator/events/watch';
import type * as eventModule from '@muster/coordinator/lifecycle/event';
import type * as gangModule from '@muster/coordinator/lifecycle/gang';
import type * as transitionModule from '@muster/coordinator/lifecycle/transition';
import type * as loopModule from '@muster/coordinator/loop';
import type * as nodeViewsModule from '@muster/coordinator/planning/nodeViews';
import type * as timeLimitsModule from '@muster/coordinator/reconcilers/timeLimits';
import type * as agentHubModule from '@muster/coordinator/rpc/agentHub';
import type * as nodeCallsModule from '@muster/coordinator/rpc/nodes';
import type * as requestsModule from '@muster/coordinator/rpc/requests';
import type * as capacityModule from '@muster/coordinator/scheduler/capacity';
import type * as reasonsModule from '@muster/coordinator/scheduler/reasons';
import type * as reserveModule from '@muster/coordinator/scheduler/reserve';
import type * as dependenciesModule from '@muster/coordinator/state/dependencies';
import type * as stateModule from '@muster/coordinator/state/state';
import type * as memoryStoreModule from '@muster/coordinator/store/memory/memoryStore';
import { alertMutants } from './alertMutants.ts';
import { clockMutants } from './clockMutants.ts';
import type * as guardModule from './guard.ts';
import { leaseMutants } from './leaseMutants.ts';
import { type Mutant, replacing } from './mutant.ts';
import { pipelineMutants } from './pipelineMutants.ts';
import { faultsOf } from './plan.ts';
import type * as storeModule from './store.ts';
import { trainingMutants } from './trainingMutants.ts';

const coordinator = 'packages/coordinator/src';
const events = replacing<typeof eventModule>(`${coordinator}/lifecycle/event.ts`);
const gang = replacing<typeof gangModule>(`${coordinator}/lifecycle/gang.ts`);
const timeLimits = replacing<typeof timeLimitsModule>(`${coordinator}/reconcilers/timeLimits.ts`);
const transitions = replacing<typeof transitionModule>(`${coordinator}/lifecycle/transition.ts`);
const loop = replacing<typeof loopModule>(`${coordinator}/loop.ts`);
const requests = replacing<typeof requestsModule>(`${coordinator}/rpc/requests.ts`);
const clusterState = replacing<typeof stateModule>(`${coordinator}/state/state.ts`);
const memoryStore = replacing<typeof memoryStoreModule>(`${coordinator}/store/memory/memoryStore.ts`);
const simulatedStore = replacing<typeof storeModule>('test/sim/store.ts');
const desired = replacing<typeof desiredModule>(`${coordinator}/agents/desired.ts`);
const session = replacing<typeof sessionModule>(`${coordinator}/agents/session.ts`);
const conditions = replacing<typeof conditionsModule>(`${coordinator}/commands/conditions.ts`);
const nodeCommands = replacing<typeof nodesModule>(`${coordinator}/commands/nodes.ts`);
const watch = replacing<typeof watchModule>(`${coordinator}/events/watch.ts`);
const nodeViews = replacing<typeof nodeViewsModule>(`${coordinator}/planning/nodeViews.ts`);
const agentHub = replacing<typeof agentHubModule>(`${coordinator}/rpc/agentHub.ts`);
const nodeCalls = replacing<typeof nodeCallsModule>(`${coordinator}/rpc/nodes.ts`);
const capacity = replacing<typeof capacityModule>(`${coordinator}/scheduler/capacity.ts`);
const reasons = replacing<typeof reasonsModule>(`${coordinator}/scheduler/reasons.ts`);
const reserve = replacing<typeof reserveModule>(`${coordinator}/scheduler/reserve.ts`);
const dependencies = replacing<typeof dependenciesModule>(`${coordinator}/state/dependencies.ts`);
const agent = 'packages/agent/src';
const steps = replacing<typeof stepModule>(`${agent}/tasks/step.ts`);
const agentSession = replacing<typeof agentSessionModule>(`${agent}/session/session.ts`);
const taskRecords = replacing<typeof recordsModule>(`${agent}/tasks/records.ts`);
const runner = replacing<typeof runnerModule>(`${agent}/tasks/runner.ts`);
const guard = replacing<typeof guardModule>('test/sim/guard.ts');

export const mutants = {
  'release-after-every-task-is-prepared': {
    rule: 'An attempt is released once every task of it is prepared.',
    breaks: ['G3'],
    seed: 1,
    replacements: [gang('isEveryTaskPrepared', () => () => true), gang('hasPaths', () => () => false)],
  },
  'start-only-when-released': {
    rule: 'An agent starts a task when it is released, not when it is assigned.',
    breaks: ['G3'],
    seed: 1,
    replacements: [
      steps('step', (step) => (state, event, now) => {
        if (event.kind !== 'prepared') return step(state, event, now);
        const order = { kind: 'start', assignment: null, addr: '127.0.0.1', port: 1, addresses: [] } as const;
        const { state: prepared } = step({ ...state, order: null }, event, now);
        return step(prepared, { kind: 'ordered', order }, now);
      }),
      steps('mayStart', () => () => true),
      guard('Guard.admit', () => () => {}),
    ],
  },
  'fencing-token': {
    rule: 'A report about an attempt that is not current changes nothing.',
    breaks: ['G7'],
    seed: 7,
    replacements: [
      events('fencedAttempt', () => (job) => ('attempt' in job.state ? job.state.attempt : null)),
    ],
  },
  'ended-is-ended': {
    rule: 'A job that has ended never changes.',
    breaks: ['G6'],
    seed: 1,
    replacements: [
      // Only a stop of such a job, since what else finds it is another rule.
      transitions('transition', (transition) => (job, event, nowMs) => {
        const queued = {
          kind: 'queued',
          backoffMs: 0,
          lastCause: null,
          sinceMs: nowMs,
          breakerOpen: false,
        } as const;
        const isStop = event.kind === 'stop' && 'endedAtMs' in job.state;
        return transition(isStop ? { ...job, state: queued } : job, event, nowMs);
      }),
      memoryStore('mayFollow', () => () => true),
      clusterState(
        'ClusterState.noteJob',
        (noteJob) =>
          function (job) {
            noteJob.call(this, job);
            this.jobs.set(job.id, job);
          },
      ),
      clusterState(
        'Draft.apply',
        (apply) =>
          function () {
            const committed = apply.call(this);
            for (const { subject, subjectSeq } of committed.events)
              this.base.subjectSeqs.set(subject, subjectSeq);
            return committed;
          },
      ),
    ],
  },
  'attempt-numbers-grow': {
    rule: 'Every attempt has a higher number than the one before.',
    breaks: ['G6'],
    seed: 1,
    replacements: [
      gang(
        'nextAttemptNumber',
        () =>
          ({ lastAttempt }) =>
            Math.max(1, lastAttempt),
      ),
      memoryStore('isOver', () => () => false),
    ],
  },
  'commit-before-answer': {
    rule: 'A submit is answered, and watches and agents receive what changed, after the commit.',
    breaks: ['G1', 'G5'],
    seed: 2,
    replacements: [
      loop(
        'commitDraft',
        (commitDraft) =>
          async (...args) =>
            void commitDraft(...args).catch(() => {}),
      ),
    ],
  },
  'commits-survive': {
    rule: 'What the store has acknowledged is there after a crash.',
    breaks: ['G1', 'G5'],
    seed: 3,
    replacements: [
      simulatedStore('SimulatedStore.commit', (commit) => {
        const losses = new WeakMap<object, () => void>();
        return function (batch) {
          const { memory, coordinator: life } = this.parts;
          const maps = Object.values(memory).filter((each) => each instanceof Map);
          const before = maps.map((map) => [...map]);
          if (!losses.has(this)) life.onEnd(() => losses.get(this)?.());
          losses.set(this, () => {
            for (const [index, map] of maps.entries()) {
              map.clear();
              for (const [key, value] of before[index] ?? []) map.set(key, value);
            }
          });
          return commit.call(this, batch);
        };
      }),
    ],
  },
  'one-request-one-submit': {
    rule: 'A submit that is sent again is the same submit.',
    breaks: ['G1', 'assertion'],
    seed: 5,
    replacements: [requests('Requests.earlier', () => async () => null)],
  },
  'silent-is-not-dead': {
    rule: 'Only its node, or proof of death, ends a task that was released.',
    breaks: ['G2', 'G7'],
    seed: 1,
    circumstances: { faults: faultsOf(5_000, 'partition', 'muteAgent', 'deafAgent') },
    replacements: [
      nodeCommands('eventOfSilence', () => (attempt, nodeRank, message) => {
        return { kind: 'taskLost', attempt: attempt.number, nodeRank, message };
      }),
    ],
  },
  'reboot-is-proof-of-death': {
    rule: 'Tasks of an earlier boot of their node have ended.',
    breaks: ['liveness', 'G2'],
    seed: 49,
    replacements: [nodeCommands('endTasksOfEarlierBoot', () => () => {})],
  },
  'gpus-are-held-to-the-end': {
    rule: 'A task keeps its GPUs until it has ended.',
    breaks: ['G3'],
    seed: 1,
    replacements: [
      nodeViews(
        'useOf',
        (useOf) => (name, jobs) =>
          useOf(
            name,
            [...jobs].filter(({ state }) => state.kind !== 'stopping'),
          ),
      ),
    ],
  },
  'a-gang-stops-together': {
    rule: 'When one task ends badly, the others of its gang are stopped.',
    breaks: ['G3'],
    seed: 30,
    replacements: [
      desired('desiredOf', (desiredOf) => (job, ...rest) => {
        if (job?.state.kind !== 'stopping') return desiredOf(job, ...rest);
        return desiredOf({ ...job, state: { kind: 'running', attempt: job.state.attempt } }, ...rest);
      }),
    ],
  },
  'events-are-numbered-on': {
    rule: 'Events of a subject are numbered without gap or repeat, across batches and restarts.',
    breaks: ['G5', 'assertion'],
    seed: 1,
    replacements: [
      clusterState(
        'Draft.emit',
        (emit) =>
          function (event, timeMs) {
            const { subjectSeqs } = this.base;
            const stored = subjectSeqs.get(event.subject);
            subjectSeqs.delete(event.subject);
            emit.call(this, event, timeMs);
            if (stored !== undefined) subjectSeqs.set(event.subject, stored);
          },
      ),
    ],
  },
  'a-watch-reads-on': {
    rule: 'A watch goes on after the last event that was seen.',
    breaks: ['G5'],
    seed: 1,
    replacements: [
      watch(
        'watchEvents',
        (watchEvents) =>
          (parts, options, ...rest) =>
            watchEvents(parts, { ...options, sinceSeq: options.sinceSeq + 1 }, ...rest),
      ),
    ],
  },
  'a-full-disk-hides-nothing': {
    rule: 'An agent follows a task whose record it cannot write.',
    breaks: ['liveness'],
    seed: 33,
    replacements: [
      taskRecords(
        'recordPhase',
        () =>
          ({ records, bootId }, task, phase) =>
            records.update(task, bootId, phase),
      ),
      runner('TaskRunner.post', (post) => {
        const failed = new WeakSet<object>();
        return function (event) {
          try {
            if (!failed.has(this)) post.call(this, event);
          } catch {
            failed.add(this);
          }
        };
      }),
    ],
  },
  'submits-at-once-are-one': {
    rule: 'A submit that is sent again while the first is being stored finds it.',
    breaks: ['assertion'],
    seed: 1,
    replacements: [requests('Requests.inProgress', () => () => undefined)],
  },
  'reservations-need-nodes': {
    rule: 'No node is kept for a job that cannot run on the nodes there are.',
    breaks: ['liveness'],
    seed: 13,
    replacements: [
      reserve(
        'canHold',
        (canHold) => (nodes, resources, pin) => canHold(nodes, { ...resources, minNodes: 0 }, pin),
      ),
    ],
  },
  'drained-gpus-get-no-work': {
    rule: 'A GPU that a condition drains is allocated to no job.',
    breaks: ['drains'],
    seed: 20,
    replacements: [
      nodeViews('freeGpusOf', (freeGpusOf) => (taken) => freeGpusOf({ ...taken, drained: new Set() })),
    ],
  },
  'drained-nodes-get-no-work': {
    rule: 'A node that a condition drains is given nothing.',
    breaks: ['drains'],
    seed: 1,
    replacements: [
      capacity(
        'isLeftByDrains',
        (isLeftByDrains) =>
          ({ drained, ...node }, demand) =>
            isLeftByDrains({ ...node, drained: { ...drained, node: false } }, demand),
      ),
    ],
  },
  'a-status-is-applied-at-once': {
    rule: 'A status is applied when it is received, not only with the next Hello.',
    breaks: ['liveness'],
    seed: 1,
    replacements: [agentHub('takeStatus', () => async () => {})],
  },
  'the-end-of-a-condition-is-an-event': {
    rule: 'What follows the events knows which conditions hold.',
    breaks: ['G5'],
    seed: 1,
    replacements: [
      conditions(
        'conditionEvents',
        (conditionEvents) =>
          (...args) =>
            conditionEvents(...args).filter(({ kind }) => kind !== 'condition.cleared'),
      ),
    ],
  },
  'cleared-is-what-the-node-reports': {
    rule: 'A clear is answered when the node is without the condition.',
    breaks: ['G7'],
    seed: 1,
    replacements: [nodeCalls('conditionAfterWait', () => async () => undefined)],
  },
  'time-limits-are-kept': {
    rule: 'An attempt ends when it has run for its limit.',
    breaks: ['liveness'],
    seed: 1,
    replacements: [timeLimits('isOverTime', () => () => false)],
  },
  'an-agent-finds-its-tasks': {
    rule: 'A restarted agent knows the tasks of the one before.',
    breaks: ['G7', 'liveness'],
    seed: 17,
    circumstances: { faults: faultsOf(4_000, 'killAgent') },
    replacements: [runner('TaskRunner.restore', () => async () => {})],
  },
  'what-is-forgotten-is-removed': {
    rule: 'An agent deletes what is left of a task when it is ordered to forget it.',
    breaks: ['liveness'],
    seed: 1,
    replacements: [steps('mayRemove', () => () => false)],
  },
  'lost-orders-are-repeated': {
    rule: 'A heartbeat shows which orders an agent has not received, and they are sent again.',
    breaks: ['liveness'],
    seed: 167,
    replacements: [session('AgentSession.remind', () => () => {})],
  },
  'a-hello-is-answered-in-time': {
    rule: 'An agent that gets no Welcome dials again.',
    breaks: ['liveness'],
    seed: 19,
    replacements: [agentSession('awaitWelcome', () => () => setTimeout(() => {}, 0))],
  },
  'array-limit': {
    rule: 'Of an array no more jobs start than its spec allows at the same time.',
    breaks: ['array limit'],
    seed: 2,
    circumstances: { faults: [], meanUserPauseMs: 400 },
    replacements: [reasons('reasonOfArray', () => () => null)],
  },
  'dependencies-are-met': {
    rule: 'A job starts once what it comes after has ended as it asked for.',
    breaks: ['dependency'],
    seed: 2,
    replacements: [dependencies('isAsWanted', () => () => true)],
  },
  ...leaseMutants,
  ...alertMutants,
  ...clockMutants,
  ...trainingMutants,
  ...pipelineMutants,
} satisfies Record<string, Mutant>;

export type MutantName = keyof typeof mutants;

export function isMutantName(text: string): text is MutantName {
  return text in mutants;
}
