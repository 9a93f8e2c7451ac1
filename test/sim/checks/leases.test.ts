/** The suspicion check and the grace check on made-up histories: what is right is no violation, and what is wrong is one. */
import type { JobId, TaskRef } from '@muster/common/ids';
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import { Grants } from '../grants.ts';
import type { Fact } from '../history.ts';
import { Life, Timeline } from '../timeline.ts';
import { ExecutionCheck } from './executions.ts';
import { GraceCheck } from './graces.ts';
import { JobStories } from './jobStories.ts';
import { LeaseCheck } from './leases.ts';
import { Verdict } from './verdict.ts';

const jobId = 'job_000000000001' as JobId;
const file = { name: 'gang', command: ['train'], stop_grace: '10s' };
const task = (nodeRank: number): TaskRef => ({ jobId, attempt: 1, nodeRank });

/** @param facts each a tenth of a second after the one before. @returns the violations that the checks report */
function judge(...facts: readonly Fact[]): readonly string[] {
  const verdict = new Verdict(() => 0);
  const executions = new ExecutionCheck(verdict);
  const stories = new JobStories(() => file);
  const grants = new Grants(new Timeline(new Life('world')));
  const shared = { verdict, executions, grants, isWell: () => true };
  const leases = new LeaseCheck({ ...shared, fileOf: () => file });
  const graces = new GraceCheck({ ...shared, stories });
  for (const [index, fact] of facts.entries()) {
    leases.see(fact, index * 100);
    if (fact.kind === 'committed') for (const event of fact.events) stories.follow(event);
    graces.see(fact, index * 100);
  }
  const judged = verdict.violations.filter(({ guarantee }) => ['suspicion', 'grace'].includes(guarantee));
  return judged.map(({ guarantee, what }) => `${guarantee}: ${what}`);
}

function committed(...events: readonly Pick<StoredEvent, 'kind' | 'subject' | 'data'>[]): Fact {
  const more = { seq: 1, id: 'c-1', subjectSeq: 1, timeMs: 0, by: 'test', peer: '' };
  return { kind: 'committed', events: events.map((event) => ({ ...event, ...more })), steps: [], trials: [] };
}

const ofNodes = (kind: StoredEvent['kind'], ...nodes: readonly string[]) =>
  committed(...nodes.map((subject) => ({ kind, subject, data: {} })));
const ofJob = (kind: StoredEvent['kind'], data: object) => ({
  kind,
  subject: jobId,
  data: { name: 'gang', attempt: 1, ...data },
});
const allocated = (...nodes: readonly string[]) =>
  committed(ofJob('attempt.allocated', { tasks: nodes.map((node) => ({ node })), resume: null }));
const coordinatorStarted: Fact = { kind: 'process', name: 'coordinator 2', what: 'started' };
const recordedEnd = (nodeRank: number) => ofJob('task.ended', { nodeRank, exit: {} });
/** As a pass gives a node up: the ends of its tasks, and the fence. */
const givenUp = (node: string, ...ranks: readonly number[]) =>
  committed(...ranks.map(recordedEnd), { kind: 'node.fenced', subject: node, data: {} });

const three = ['node-1', 'node-2', 'node-3'];
const distrust = ['suspicion: tasks of node-3 were given up while 3 nodes are silent and 0 answer'];

test('a node given up while most of those that spoke are silent', () => {
  const fallen = [ofNodes('node.online', ...three), ofNodes('node.silent', ...three)];
  expect(judge(...fallen, givenUp('node-3'))).toEqual(distrust);
  expect(judge(...fallen, ofNodes('node.online', 'node-1', 'node-2'), givenUp('node-3'))).toEqual([]);
});

test('the silence of a node counts when it spoke to this coordinator or holds a task, and else not', () => {
  const online = ofNodes('node.online', ...three);
  const silent = ofNodes('node.silent', ...three);
  expect(judge(online, coordinatorStarted, silent, givenUp('node-3'))).toEqual([]);
  // Those that hold tasks are missed by a coordinator that has heard none of them, to the commit that gives one up.
  const held = allocated(...three);
  expect(judge(online, held, coordinatorStarted, silent, givenUp('node-3', 2))).toEqual(distrust);
  const over = committed(recordedEnd(0), recordedEnd(1));
  expect(judge(online, held, over, coordinatorStarted, silent, givenUp('node-3', 2))).toEqual([]);
  const all = committed(ofJob('attempt.ended', {}));
  expect(judge(online, held, all, coordinatorStarted, silent, givenUp('node-3'))).toEqual([]);
});

test('a silence that an earlier coordinator noticed is no silence for this one', () => {
  const online = ofNodes('node.online', ...three);
  const earlier = [online, ofNodes('node.silent', ...three), coordinatorStarted, allocated(...three)];
  expect(judge(...earlier, ofNodes('node.silent', 'node-3'), givenUp('node-3', 2))).toEqual([]);
});

const started: Fact = {
  kind: 'started',
  machine: 'node-1',
  task: task(0),
  nodeCount: 2,
  gpuUuids: [],
  portWasHeld: true,
  phase: null,
  resume: null,
};
const stopReceived: Fact = { kind: 'stopReceived', machine: 'node-1', task: task(0) };
const killed: Fact = {
  kind: 'ended',
  machine: 'node-1',
  task: task(0),
  exitCode: null,
  signal: 'SIGKILL',
  by: 'stop',
};

test('a task that is killed before the end of its grace, unless its end was recorded before', () => {
  const story = [allocated('node-1', 'node-2'), started];
  expect(judge(...story, stopReceived, killed)).toEqual([
    expect.stringMatching(/^grace: .*100 ms into its grace/),
  ]);
  // Lost, as far as the coordinator knew; the other task of its attempt is still being stopped.
  expect(judge(...story, committed(recordedEnd(0)), stopReceived, killed)).toEqual([]);
  expect(judge(...story, committed(recordedEnd(1)), stopReceived, killed)).toHaveLength(1);
});
