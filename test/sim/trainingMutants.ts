/** Rules of checkpoints, of giving way and of retries, each taken out. */
import { edit, type Mutant } from './mutant.ts';

const coordinator = 'packages/coordinator/src';
const lifecycle = `${coordinator}/lifecycle`;
const planning = `${coordinator}/planning/planningView.ts`;
const resume = `${lifecycle}/resume.ts`;
const checkpoints = `${lifecycle}/checkpoints.ts`;
const recovery = `${lifecycle}/recovery.ts`;
const good = "return verdict === 'verified' && !suspect;";

export const trainingMutants = {
  'only-whole-checkpoints': {
    rule: 'An attempt begins from a checkpoint that was found whole.',
    breaks: ['resume'],
    seed: 1,
    edits: [edit(resume, good, 'return verdict !== null && !suspect;')],
  },
  'suspects-are-left-alone': {
    rule: 'A checkpoint of which attempts died in the same way is not begun from.',
    breaks: ['resume'],
    seed: 4,
    edits: [edit(resume, good, "return verdict === 'verified' && suspect !== null;")],
  },
  'readable-where-it-runs': {
    rule: 'An attempt begins from what one of its nodes can read.',
    breaks: ['resume'],
    seed: 59,
    edits: [
      edit(
        `${coordinator}/scheduler/pin.ts`,
        'readers === null || tasks.some(({ node }) => readers.has(node))',
        'readers === null || tasks.length > 0',
      ),
    ],
  },
  'no-work-is-left-behind': {
    rule: 'A job whose newest checkpoint is on one machine goes on there.',
    breaks: ['resume'],
    seed: 1,
    edits: [
      edit(
        planning,
        'if (best === undefined || best.readers === null || home === undefined) return null;',
        'if (best !== null) return null;',
      ),
    ],
  },
  'the-newest-comes-first': {
    rule: 'Of several checkpoints the newest is begun from.',
    breaks: ['resume'],
    seed: 1,
    edits: [edit(resume, 'checkpoints.filter(isGood).toReversed()', 'checkpoints.filter(isGood)')],
  },
  'the-last-checkpoint-before-the-end': {
    rule: 'An end is told when what was saved last is known.',
    breaks: ['resume'],
    seed: 4,
    edits: [edit('packages/agent/src/tasks/actions.ts', 'await checkpoints.lastLook(task);', '')],
  },
  'only-lower-priorities-are-preempted': {
    rule: 'Only jobs of lower priority are preempted.',
    breaks: ['preemption'],
    seed: 10,
    edits: [
      edit(
        `${coordinator}/scheduler/preemptible.ts`,
        '.filter((holder) => holder.priority < priority)',
        '.filter((holder) => holder.priority !== priority)',
      ),
    ],
  },
  'only-preemptible-jobs-are-preempted': {
    rule: 'A job that is not declared preemptible is not preempted.',
    breaks: ['preemption'],
    seed: 1,
    edits: [
      edit(
        planning,
        'isPreemptible: spec.preemptible && mayBePreempted(job)',
        'isPreemptible: mayBePreempted(job)',
      ),
    ],
  },
  'so-often-and-no-more': {
    rule: 'A job gives way no more than max_preemptions times.',
    breaks: ['preemption'],
    seed: 1,
    edits: [
      edit(
        recovery,
        'return maxPreemptions === null || preemptions < maxPreemptions;',
        'return maxPreemptions === null || preemptions < maxPreemptions + 1_000;',
      ),
    ],
  },
  'giving-way-is-counted': {
    rule: 'Each time that a job gives way counts.',
    breaks: ['preemption'],
    seed: 1,
    edits: [
      edit(
        `${lifecycle}/stopping.ts`,
        "preemptions: job.preemptions + (charge === 'preemption' ? 1 : 0),",
        'preemptions: job.preemptions,',
      ),
    ],
  },
  'giving-way-is-no-failure': {
    rule: 'A job that gave way is back in the queue, and its budget is what it was.',
    breaks: ['preemption', 'retry'],
    seed: 1,
    edits: [edit(`${lifecycle}/requests.ts`, "charge: 'preemption', };", "charge: 'failure', };")],
  },
  'its-place-is-kept': {
    rule: 'A job that was put back keeps its place in the queue.',
    breaks: ['preemption'],
    seed: 1,
    edits: [
      edit(
        `${lifecycle}/stopping.ts`,
        "failures: job.failures + (charge === 'failure' ? 1 : 0),",
        "failures: job.failures + (charge === 'failure' ? 1 : 0), submitSeq: job.submitSeq + 1_000,",
      ),
      edit(
        `${coordinator}/store/memory/memoryStore.ts`,
        '{ ...job, spec, submitSeq, submittedAtMs }',
        '{ ...job, spec, submitSeq: job.submitSeq ?? submitSeq, submittedAtMs }',
      ),
    ],
  },
  'a-grace-is-a-grace': {
    rule: 'Only a checkpoint that was begun after the signal ends a grace early.',
    breaks: ['grace'],
    seed: 2,
    edits: [edit(checkpoints, 'const isLast = event.afterStop && job', 'const isLast = job')],
  },
  'nodes-to-be-left-get-no-work': {
    rule: 'A node that a person has drained is given nothing.',
    breaks: ['drains'],
    seed: 2,
    edits: [edit(planning, 'node: node || drain !== null,', 'node,')],
  },
  'nodes-are-left-in-time': {
    rule: 'Work is taken off a node early enough before its deadline.',
    breaks: ['drains'],
    seed: 622,
    edits: [
      edit(
        `${coordinator}/reconcilers/drains.ts`,
        'nowMs >= deadline.atMs - lead;',
        'nowMs >= deadline.atMs + 600_000 - lead;',
      ),
    ],
  },
  'only-what-it-asks-for': {
    rule: 'A job is tried again after the causes that it names.',
    breaks: ['retry'],
    seed: 1,
    edits: [
      edit(
        recovery,
        '(retry.on as readonly CauseKind[]).includes(cause.kind) && isExhausted !== true',
        'isExhausted !== true',
      ),
    ],
  },
  'the-budget-is-kept': {
    rule: 'A job is tried no more often than max_attempts without progress.',
    breaks: ['retry'],
    seed: 1,
    edits: [
      edit(recovery, 'job.failures + 1 >= retry.maxAttempts', 'job.failures + 1 >= retry.maxAttempts + 3'),
    ],
  },
  'the-breaker-opens': {
    rule: 'After so many failures in a row there is a pause before each trial.',
    breaks: ['retry'],
    seed: 1,
    edits: [
      edit(
        recovery,
        'return failuresInRow >= spec.retry.breaker.failures;',
        'return failuresInRow >= spec.retry.breaker.failures + 1_000;',
      ),
    ],
  },
  'progress-refills': {
    rule: 'What went wrong before a newer checkpoint is over.',
    breaks: ['retry'],
    seed: 2,
    edits: [
      edit(
        checkpoints,
        'const rewarded: Job = { ...job, failures: 0, failuresInRow: 0, recentFailures: [], excludedNodes: [] };',
        'const rewarded: Job = { ...job, recentFailures: [], excludedNodes: [] };',
      ),
    ],
  },
  'every-second-is-booked-once': {
    rule: 'What an attempt held is booked, and once.',
    breaks: ['ledger'],
    seed: 1,
    edits: [
      edit(
        `${lifecycle}/ledger.ts`,
        "entry('productive', gpus, keptAtMs - beganAtMs),",
        "entry('productive', gpus, keptAtMs - allocatedAtMs),",
      ),
    ],
  },
} satisfies Record<string, Mutant>;
