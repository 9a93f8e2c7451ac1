/**
 * The product with one of its rules taken out. A check counts only after it has failed on such a build: each entry names
 * the rule, the functions that are replaced to remove it, or the lines where no function is the rule, and the guarantee whose check must then speak up.
 */

import type * as stepModule from '@muster/agent/tasks/step';
import type * as eventModule from '@muster/coordinator/lifecycle/event';
import type * as gangModule from '@muster/coordinator/lifecycle/gang';
import type * as timeLimitsModule from '@muster/coordinator/reconcilers/timeLimits';
import { leaseMutants } from './leaseMutants.ts';
import { edit, type Mutant, replacing } from './mutant.ts';
import { trainingMutants } from './trainingMutants.ts';

const coordinator = 'packages/coordinator/src';
const event = replacing<typeof eventModule>(`${coordinator}/lifecycle/event.ts`);
const gang = replacing<typeof gangModule>(`${coordinator}/lifecycle/gang.ts`);
const timeLimits = replacing<typeof timeLimitsModule>(`${coordinator}/reconcilers/timeLimits.ts`);
const state = `${coordinator}/state/state.ts`;
const nodes = `${coordinator}/commands/nodes.ts`;
const agent = 'packages/agent/src';
const step = replacing<typeof stepModule>(`${agent}/tasks/step.ts`);

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
    edits: [
      edit(
        `${agent}/tasks/step.ts`,
        "return life.announced === 'yes' ? null : announced(state, life);",
        "return starting(state, { kind: 'start', assignment: null, addr: '127.0.0.1', port: 1, addresses: [] }, life);",
      ),
      edit('test/sim/guard.ts', 'if (lease === null) return;', 'if (lease !== undefined) return;'),
    ],
  },
  'fencing-token': {
    rule: 'A report about an attempt that is not current changes nothing.',
    breaks: ['G7'],
    seed: 17,
    replacements: [
      event('fencedAttempt', () => (job) => ('attempt' in job.state ? job.state.attempt : null)),
    ],
  },
  'ended-is-ended': {
    rule: 'A job that has ended never changes.',
    breaks: ['G6'],
    seed: 1,
    edits: [
      edit(`${coordinator}/store/memory/memoryStore.ts`, '!isTerminal(known.state.kind) &&', ''),
      edit(state, 'this.jobs.delete(id);', 'this.jobs.set(id, job);'),
      edit(state, 'base.subjectSeqs.delete(job.id);', ';'),
      edit(
        `${coordinator}/lifecycle/requests.ts`,
        "Handler<'stop'> = (job, event, nowMs) => { if (isTerminal(job.state.kind)) return unchanged(job);",
        "Handler<'stop'> = (job, event, nowMs) => {",
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
    ],
    edits: [
      edit(
        `${coordinator}/store/memory/memoryStore.ts`,
        "|| known?.get(attempt.number)?.state === 'ended'",
        '',
      ),
    ],
  },
  'commit-before-answer': {
    rule: 'A submit is answered, and agents are told, after the commit.',
    breaks: ['G1'],
    seed: 3,
    edits: [
      edit(
        `${coordinator}/loop.ts`,
        'if (!draft.isEmpty()) await this.commit(draft);',
        'if (!draft.isEmpty()) void this.commit(draft).catch(() => {});',
      ),
    ],
  },
  'commits-survive': {
    rule: 'What the store has acknowledged is there after a crash.',
    breaks: ['G1', 'G5'],
    seed: 3,
    edits: [
      edit(
        'test/sim/store.ts',
        'persist().then(() => answer(resolve), refuse);',
        `
          const maps = Object.values(this.parts.memory).filter((each) => each instanceof Map);
          const before = maps.map((map) => [...map]);
          if (this.loseLast === undefined) coordinator.onEnd(() => this.loseLast());
          this.loseLast = () => maps.forEach((map, index) => {
            map.clear();
            for (const [key, value] of before[index]) map.set(key, value);
          });
          persist().then(() => answer(resolve), refuse);`,
      ),
    ],
  },
  'one-request-one-submit': {
    rule: 'A submit that is sent again is the same submit.',
    breaks: ['G1', 'assertion'],
    seed: 5,
    edits: [
      edit(
        `${coordinator}/rpc/jobs.ts`,
        'if (earlier !== null) return { record: earlier, repeated: true };',
        '',
      ),
    ],
  },
  'silent-is-not-dead': {
    rule: 'Only its node, or proof of death, ends a task that was released.',
    breaks: ['G2', 'G7'],
    seed: 14,
    edits: [
      edit(
        nodes,
        'if (attempt === null || rank < 0 || isReleased(attempt)) continue;',
        'if (attempt === null || rank < 0) continue;',
      ),
      edit(
        nodes,
        "{ kind: 'startFailed', attempt: attempt.number, cause, excludeNodes: [] }",
        "{ kind: 'taskLost', attempt: attempt.number, nodeRank: rank, message }",
      ),
    ],
  },
  'reboot-is-proof-of-death': {
    rule: 'Tasks of an earlier boot of their node have ended.',
    breaks: ['liveness', 'G2'],
    seed: 27,
    edits: [
      edit(
        nodes,
        'if (before !== undefined && before.bootId !== command.bootId) endTasksOfEarlierBoot(draft, command, nowMs);',
        '',
      ),
    ],
  },
  'gpus-are-held-to-the-end': {
    rule: 'A task keeps its GPUs until it has ended.',
    breaks: ['G3'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/planning/nodeViews.ts`,
        "if (task.state === 'ended') continue;",
        "if (task.state === 'ended' || job.state.kind === 'stopping') continue;",
      ),
    ],
  },
  'a-gang-stops-together': {
    rule: 'When one task ends badly, the others of its gang are stopped.',
    breaks: ['G3'],
    seed: 1,
    edits: [edit(`${coordinator}/agents/desired.ts`, "if (job.state.kind === 'stopping')", 'if (false)')],
  },
  'events-are-numbered-on': {
    rule: 'Events of a subject are numbered without gap or repeat, across batches and restarts.',
    breaks: ['G5', 'assertion'],
    seed: 1,
    edits: [
      edit(
        state,
        '(this.subjectSeqs.get(event.subject) ?? this.base.subjectSeqs.get(event.subject) ?? 0) + 1;',
        '(this.subjectSeqs.get(event.subject) ?? 0) + 1;',
      ),
    ],
  },
  'a-watch-reads-on': {
    rule: 'A watch goes on after the last event that was seen.',
    breaks: ['G5'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/events/watch.ts`,
        'let position = options.sinceSeq;',
        'let position = options.sinceSeq + 1;',
      ),
    ],
  },
  'a-full-disk-hides-nothing': {
    rule: 'An agent follows a task whose record it cannot write.',
    breaks: ['liveness'],
    seed: 10,
    edits: [
      edit(
        `${agent}/tasks/runner.ts`,
        "this.log.error(fields, 'the state of a task could not be written down');",
        "this.state = { ...this.state, work: { kind: 'remove' } };",
      ),
    ],
  },
  'submits-at-once-are-one': {
    rule: 'A submit that is sent again while the first is being stored finds it.',
    breaks: ['assertion'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/rpc/jobs.ts`,
        'const first = underway.get(requestId);',
        'const first = underway.get("none");',
      ),
    ],
  },
  'reservations-need-nodes': {
    rule: 'No node is kept for a job that cannot run on the nodes there are.',
    breaks: ['liveness'],
    seed: 13,
    edits: [
      edit(
        `${coordinator}/scheduler/reserve.ts`,
        'group.length >= resources.minNodes && (pin === null',
        '(pin === null',
      ),
    ],
  },
  'drained-gpus-get-no-work': {
    rule: 'A GPU that a condition drains is given to nobody.',
    breaks: ['drains'],
    seed: 26,
    edits: [edit(`${coordinator}/planning/nodeViews.ts`, '&& !drained.gpuUuids.has(uuid)', '')],
  },
  'drained-nodes-get-no-work': {
    rule: 'A node that a condition drains is given nothing.',
    breaks: ['drains'],
    seed: 1,
    edits: [edit(`${coordinator}/scheduler/capacity.ts`, 'if (drained.node) return false;', '')],
  },
  'a-status-is-applied-at-once': {
    rule: 'A status is applied when it is received, not only with the next Hello.',
    breaks: ['liveness'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/rpc/agentHub.ts`,
        'if (message.status != null) await takeStatus(parts, session, message.status);',
        '',
      ),
    ],
  },
  'the-end-of-a-condition-is-an-event': {
    rule: 'What follows the events knows which conditions hold.',
    breaks: ['G5'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/commands/conditions.ts`,
        'before.filter((each) => !holding.has(conditionKey(each)))',
        'before.slice(before.length)',
      ),
    ],
  },
  'cleared-is-what-the-node-says': {
    rule: 'A clear is answered when the node is without the condition.',
    breaks: ['G7'],
    seed: 1,
    edits: [
      edit(
        `${coordinator}/rpc/nodes.ts`,
        'if (condition === undefined || waiting.signal.aborted) return condition;',
        'return undefined;',
      ),
    ],
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
    seed: 10,
    edits: [
      edit(
        `${agent}/tasks/manager.ts`,
        'for (const record of this.parts.records.load())',
        'for (const record of this.parts.records.load().slice(0, 0))',
      ),
    ],
  },
  'what-is-forgotten-is-removed': {
    rule: 'An agent deletes what is left of a task when it is told to forget it.',
    breaks: ['liveness'],
    seed: 1,
    replacements: [step('mayRemove', () => () => false)],
  },
  'lost-orders-are-repeated': {
    rule: 'A heartbeat shows which orders an agent has not received, and they are sent again.',
    breaks: ['liveness'],
    seed: 167,
    edits: [
      edit(
        `${coordinator}/rpc/agentHub.ts`,
        'session.remind(reports, (id) => parts.state.jobs.get(id));',
        '',
      ),
    ],
  },
  'a-hello-is-answered-in-time': {
    rule: 'An agent that gets no Welcome dials again.',
    breaks: ['liveness'],
    seed: 14,
    edits: [
      edit(
        `${agent}/session/session.ts`,
        'this.heartbeat = setTimeout(giveUp, welcomeTimeoutMs);',
        'void giveUp;',
      ),
    ],
  },
  'array-limit': {
    rule: 'Of an array no more jobs start than its spec allows at the same time.',
    breaks: ['array limit'],
    seed: 1,
    edits: [edit(`${coordinator}/scheduler/plan.ts`, '?? reasonOfArray(job, this.arraysAtWork);', ';')],
  },
  'dependencies-are-met': {
    rule: 'A job starts once what it comes after has ended as it asked for.',
    breaks: ['dependency'],
    seed: 2,
    edits: [
      edit(
        `${coordinator}/state/dependencies.ts`,
        "const isMet = (outcome === 'succeeded') === (when === 'ok');",
        'const isMet = true;',
      ),
    ],
  },
  ...leaseMutants,
  ...trainingMutants,
} satisfies Record<string, Mutant>;

export type MutantName = keyof typeof mutants;

export function isMutantName(text: string): text is MutantName {
  return text in mutants;
}
