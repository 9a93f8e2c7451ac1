/** What is kept from pass to pass, and jobs that are not looked at, change no plan: random walks beside plans from scratch. */
import type { JobId } from '@muster/common/ids';
import { expect, test } from 'vitest';
import type { Job, Node } from '../model.ts';
import {
  aCondition,
  aJob,
  aNode,
  anAttempt,
  anExit,
  anInventory,
  aSpec,
  aTask,
  nodeNameOf,
  seededRandom,
  someGpus,
} from '../modelFixture.ts';
import { plan } from '../scheduler/plan.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { noStoredAlerts } from '../store/alerts.ts';
import { noStoredPipelines } from '../store/pipelines.ts';
import { noStoredSweeps } from '../store/sweeps.ts';
import { NodeViews } from './nodeViews.ts';
import { planningView } from './planningView.ts';
import { SchedulerState, surveyOf } from './schedulerState.ts';
import { WaitTimes } from './waitTimes.ts';

const random = seededRandom(11_081_961);
const upTo = (maximum: number) => Math.floor(random() * (maximum + 1));

function nodeWith(index: number, gpus: number): Node {
  const name = `node-${index}`;
  return aNode(name, { inventory: anInventory({ gpus: someGpus(name, gpus), cpus: 8 }) });
}

test('views of nodes are those that are made from scratch, whatever changes in between', () => {
  for (let walk = 0; walk < 40; walk += 1) {
    const nodes = new Map<string, Node>(
      Array.from({ length: 5 }, (_, index) => [`node-${index}`, nodeWith(index, 4)]),
    );
    const holders = new Map<string, Job>();
    const away = new Set<string>();
    const orphaned = new Map<string, ReadonlySet<string>>();
    const kept = new NodeViews();
    for (let step = 0; step < 60; step += 1) {
      const name = `node-${upTo(4)}`;
      const gpu = `GPU-${name}-${upTo(3)}`;
      const [change, id] = [upTo(6), `${name} ${gpu}`];
      const held = holders.get(id);
      if (change <= 1 && held === undefined) {
        const task = aTask(0, { node: nodeNameOf(name), gpuUuids: [gpu], cpus: 0.5, state: 'running' });
        const elsewhere = aTask(1, { node: nodeNameOf(`node-${upTo(4)}`), gpuUuids: [], cpus: 1 });
        const attempt = anAttempt(1, { tasks: [task, elsewhere] });
        const number = walk * 1_000 + step + 1;
        holders.set(id, aJob(number, { lastAttempt: 1, state: { kind: 'running', attempt } }));
      } else if (change === 2 && held?.state.kind === 'running') {
        const tasks = held.state.attempt.tasks.map((task) => ({
          ...task,
          state: 'ended' as const,
          exit: anExit(),
        }));
        holders.set(id, { ...held, state: { kind: 'running', attempt: { ...held.state.attempt, tasks } } });
      } else if (change === 3) {
        holders.delete(id);
      } else if (change === 4) {
        const conditions = upTo(1) === 0 ? [] : [aCondition('xid_79', { action: 'drain_gpu', gpuUuid: gpu })];
        nodes.set(name, { ...nodeWith(Number(name.slice(5)), 4), conditions });
      } else if (change === 5) {
        if (!away.delete(name)) away.add(name);
      } else if (change === 6) {
        orphaned.set(name, new Set(upTo(1) === 0 ? [] : [gpu]));
      }
      // Some passes see several changes, and some see the jobs in another order.
      if (upTo(2) === 0) continue;
      const jobs = upTo(3) === 0 ? [...holders.values()].reverse() : [...holders.values()];
      const look = (views: NodeViews) =>
        views.of([...nodes.values()], jobs, (node) => ({
          online: !away.has(node),
          awaitedUntilMs: away.has(node) ? step : null,
          orphaned: orphaned.get(node) ?? new Set(),
          needsPreflight: away.has(node) && step % 2 === 0,
        }));
      expect(look(kept), `walk ${walk}, step ${step}`).toEqual(look(new NodeViews()));
    }
  }
});

/** Plans until nothing more starts. @returns where each job starts */
function carriedOut(draft: Draft): ReadonlyMap<JobId, readonly string[]> {
  const starts = new Map<JobId, readonly string[]>();
  const memory = new SchedulerState();
  const onlineNodes = new Set([...draft.everyNode()].map(({ name }) => name));
  for (let another = true; another; ) {
    const view = planningView(
      draft,
      surveyOf(draft),
      {
        onlineNodes,
        memory,
        waitTimes: new WaitTimes(),
        leaseMs: 60_000,
        orphanGpus: () => new Set<string>(),
        needsPreflight: () => false,
      },
      1_000,
    );
    another = false;
    for (const decision of plan(view, 1_000)) {
      if (decision.kind === 'again') another = true;
      if (decision.kind !== 'start') continue;
      const job = draft.job(decision.jobId);
      if (job === undefined) throw new Error('an unknown job starts');
      starts.set(
        job.id,
        decision.tasks.flatMap(({ node, gpuUuids }) => [node, ...gpuUuids]),
      );
      const tasks = decision.tasks.map((task, nodeRank) => aTask(nodeRank, task));
      const attempt = anAttempt(1, { tasks });
      draft.putJob({ ...job, lastAttempt: 1, state: { kind: 'starting', attempt } });
    }
  }
  return starts;
}

test('a queue of which only the first of equals are looked at starts as one that is looked at as a whole', () => {
  for (let situation = 0; situation < 25; situation += 1) {
    const nodes = Array.from({ length: 20 + upTo(20) }, (_, index) => nodeWith(index, upTo(8)));
    const kinds = Array.from({ length: 3 }, () =>
      aSpec({
        resources: {
          gpus: upTo(2),
          nodes: 1 + upTo(1) * upTo(1),
          ...(upTo(1) === 0 ? {} : { cpus: upTo(2) }),
        },
        priority: 40 + 10 * upTo(1),
      }),
    );
    const jobs = Array.from({ length: 250 }, (_, index) => {
      const spec = kinds[upTo(2)];
      if (spec === undefined) throw new Error('no spec');
      return aJob(index + 1, { spec: { ...spec } });
    });
    const state = (activeJobs: readonly Job[]) =>
      new ClusterState({
        clusterId: 'test',
        activeJobs,
        nodes,
        unfilledArrays: [],
        credentials: [],
        users: [],
        projects: [],
        alerts: noStoredAlerts,
        sweeps: noStoredSweeps,
        pipelines: noStoredPipelines,
        evaluations: [],
        budgets: [],
        outcomes: new Map(),
        successors: new Map(),
        arrayFailures: new Map(),
        subjectSeqs: new Map(),
        lastSubmitSeq: 999,
        lastEventSeq: 0,
      });
    const whole = new Draft(state([]));
    for (const job of jobs) whole.addJob(job);
    expect(carriedOut(new Draft(state(jobs))), `situation ${situation}`).toEqual(carriedOut(whole));
  }
});
