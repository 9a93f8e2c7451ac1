/** Compares the choice of victims with a look at every choice there is, on thousands of small clusters. */
import { describe, expect, it } from 'vitest';
import { jobIdOf, seededRandom } from '../modelFixture.ts';
import { aCluster, type Cluster, type Plan } from './clusterFixture.ts';
import { plan } from './plan.ts';
import { nowMs } from './planCheckFixture.ts';
import type { Holder, QueuedJob, SchedulerNode, SchedulerView } from './view.ts';

type UpTo = (maximum: number) => number;

/** Up to five nodes, up to eight attempts on them, and one job that wants in. */
function anySituation(upTo: UpTo): Cluster {
  const sometimes = (percent: number) => upTo(99) < percent;
  const cluster = aCluster();
  const nodeCount = 1 + upTo(4);
  for (let node = 0; node < nodeCount; node += 1) {
    cluster.node({
      gpus: 1 + upTo(2),
      cpus: 8,
      memoryMb: 64,
      ...(sometimes(15) ? { freeTasks: 1 + upTo(2) } : {}),
      online: !sometimes(8),
      drained: sometimes(5),
      gpu: { model: sometimes(25) ? 'NVIDIA A100' : 'NVIDIA H100' },
      ...(sometimes(50) ? { topology: `rack${upTo(1)}` } : {}),
    });
  }
  for (let holder = 3 + upTo(5); holder > 0; holder -= 1) addHolder(cluster, upTo, sometimes);
  const min = 1 + upTo(Math.min(2, nodeCount - 1));
  return cluster.job({
    nodes: { min, max: min + (sometimes(20) ? 1 : 0) },
    gpus: sometimes(80) ? 1 + upTo(2) : 0,
    ...(sometimes(40) ? { cpus: 1 + upTo(7) } : {}),
    ...(sometimes(30) ? { memory_mb: 1 + upTo(63) } : {}),
    ...(sometimes(20) ? { gpu_type: ['A100'] } : {}),
    ...(sometimes(25) ? { topology: 'required' as const } : {}),
    ...(sometimes(15) ? { excludedNodes: [`node-${1 + upTo(4)}`] } : {}),
    ...(sometimes(20) ? { pinnedTo: [`node-${1 + upTo(4)}`] } : {}),
    priority: 10 * (1 + upTo(4)),
  });
}

function addHolder(cluster: Cluster, upTo: UpTo, sometimes: (percent: number) => boolean): void {
  const free = cluster.view.nodes.filter(
    ({ freeCpus, freeMemoryMb, freeTasks }) => freeCpus >= 4 && freeMemoryMb >= 16 && freeTasks >= 1,
  );
  const size = sometimes(35) ? 2 + upTo(1) : 1;
  const on = Object.fromEntries(
    free
      .map((node) => ({ node, key: upTo(1_000) }))
      .sort((a, b) => a.key - b.key)
      .slice(0, size)
      .map(({ node }) => [node.name, Math.min(node.freeGpus.length, 1 + upTo(2))]),
  );
  cluster.holder({
    on,
    cpus: upTo(4),
    memoryMb: upTo(16),
    priority: 10 * upTo(4),
    isPreemptible: !sometimes(15),
    state: sometimes(10) ? 'preempted' : sometimes(5) ? 'ending' : 'active',
    lost: 10 * upTo(5),
  });
}

/** Would the job fit once these have ended? Written a second time, without any code that the planner uses. */
function fitsWithout(job: QueuedJob, { nodes }: SchedulerView, gone: readonly Holder[]): boolean {
  const { resources } = job.spec;
  const { gpus, gpuType, minNodes, cpus, memoryMb, topology } = resources;
  const takes = (model: string) => gpuType.length === 0 || gpuType.some((type) => model.includes(type));
  const count = (node: SchedulerNode, uuids: ReadonlySet<string>) =>
    node.inventory.gpus.filter(({ uuid, model }) => uuids.has(uuid) && takes(model)).length;
  const couldEver = nodes.filter(
    (node) => node.inventory.gpus.filter(({ model }) => takes(model)).length >= gpus,
  );
  const isHome = ({ name }: SchedulerNode) => job.pin?.nodes.has(name) === true;
  const others = couldEver.filter((node) => isHome(node) || !job.excludedNodes.has(node.name));
  const isBound = topology === 'required' && minNodes > 1;
  const rack = (node: SchedulerNode) => node.inventory.labels['topology'] ?? node.name;
  const most = (list: readonly SchedulerNode[], bound: boolean) =>
    bound
      ? Math.max(0, ...list.map((node) => list.filter((each) => rack(each) === rack(node)).length))
      : list.length;
  const isBoundAtAll = topology === 'required' && resources.nodes > 1;
  const eligible = most(others, isBoundAtAll) >= minNodes ? others : couldEver;
  const able = eligible.filter((node) => {
    if (!node.online || node.drained.node) return false;
    const shares = gone.flatMap(({ tasks }) => tasks.filter((task) => task.node === node.name));
    const uuids = new Set([
      ...node.freeGpus.map(({ uuid }) => uuid),
      ...shares.flatMap(({ gpuUuids }) => gpuUuids),
    ]);
    const sum = (of: (share: (typeof shares)[number]) => number) =>
      shares.reduce((all, each) => all + of(each), 0);
    return (
      count(node, uuids) >= gpus &&
      node.freeCpus + sum((share) => share.cpus) >= (cpus ?? (gpus === 0 ? 1 : 0)) - 1e-9 &&
      node.freeMemoryMb + sum((share) => share.memoryMb) >= (memoryMb ?? 0) &&
      node.freeTasks + shares.length >= 1
    );
  });
  const groups = isBound
    ? [...new Set(able.map(rack))].map((name) => able.filter((node) => rack(node) === name))
    : [able];
  return groups.some((group) => group.length >= minNodes && (job.pin === null || group.some(isHome)));
}

interface Loss {
  readonly gpuSeconds: number;
  readonly priorities: number;
}

function lossOf(victims: readonly Holder[]): Loss {
  return {
    gpuSeconds: victims.reduce((sum, { lostGpuSeconds }) => sum + lostGpuSeconds, 0),
    priorities: victims.reduce((sum, { priority }) => sum + priority + 1, 0),
  };
}

/** The least that any choice would lose; null: none would do. */
function leastLoss(job: QueuedJob, view: SchedulerView): Loss | null {
  const leaving = view.holders.filter(({ state }) => state !== 'active');
  const allowed = view.holders.filter(
    ({ state, isPreemptible, priority }) =>
      state === 'active' && isPreemptible && priority < job.spec.priority,
  );
  let least: Loss | null = null;
  for (let mask = 0; mask < 2 ** allowed.length; mask += 1) {
    const victims = allowed.filter((_, index) => (mask >> index) % 2 === 1);
    const loss = lossOf(victims);
    const isLess =
      least === null ||
      loss.gpuSeconds < least.gpuSeconds ||
      (loss.gpuSeconds === least.gpuSeconds && loss.priorities < least.priorities);
    if (isLess && fitsWithout(job, view, [...leaving, ...victims])) least = loss;
  }
  return least;
}

function expectNoneSuperfluous(view: SchedulerView, { preemptions }: Plan): void {
  const ids = new Set(preemptions.map(({ victim }) => victim.id));
  const victims = view.holders.filter(({ id }) => ids.has(id));
  const leaving = view.holders.filter(({ state }) => state !== 'active');
  const [job] = view.queue;
  if (job === undefined) throw new Error('nobody waits');
  for (const victim of victims) {
    const rest = victims.filter((each) => each !== victim);
    expect(fitsWithout(job, view, [...leaving, ...rest]), `${victim.id} is superfluous`).toBe(false);
  }
}

describe('victims', () => {
  it('lose as little as any choice would, are enough, and none of them is superfluous', () => {
    const random = seededRandom(5_061_980);
    const upTo: UpTo = (maximum) => Math.floor(random() * (maximum + 1));
    const seen = { preempting: 0, several: 0, impossible: 0, waiting: 0 };
    for (let situation = 0; situation < 3_000; situation += 1) {
      const cluster = anySituation(upTo);
      const { view } = cluster;
      const [job] = view.queue;
      if (job === undefined) throw new Error('nobody waits');
      // `plan` checks who may be preempted, and that the place kept is there.
      const result = cluster.plan();
      const ids = new Set(result.preemptions.map(({ victim }) => victim.id));
      const victims = view.holders.filter(({ id }) => ids.has(id));
      if (result.tasksOf(1) !== null) {
        expect(victims).toEqual([]);
        continue;
      }
      const least = leastLoss(job, view);
      const what = `situation ${situation}`;
      if (least === null) {
        expect(victims, what).toEqual([]);
        seen.impossible += 1;
        continue;
      }
      expect(lossOf(victims), what).toEqual(least);
      const leaving = view.holders.filter(({ state }) => state !== 'active');
      expect(fitsWithout(job, view, [...leaving, ...victims]), what).toBe(true);
      expectNoneSuperfluous(view, result);
      expect(result.keptFor(1), `${what}: its place is kept`).not.toBeNull();
      seen.preempting += Number(victims.length > 0);
      seen.several += Number(victims.length > 1);
      seen.waiting += Number(victims.length === 0);
    }
    expect(seen.preempting).toBeGreaterThan(400);
    expect(seen.several).toBeGreaterThan(120);
    expect(seen.impossible).toBeGreaterThan(200);
    expect(seen.waiting).toBeGreaterThan(50);
  });

  it('are found among more than can be looked at one by one', () => {
    const cluster = aCluster();
    for (let node = 0; node < 60; node += 1) cluster.node({ gpus: 8 });
    const names = cluster.view.nodes.map(({ name }) => name);
    // Gangs of three, each of which overlaps with the next: any of forty may stand or fall with any other.
    for (let gang = 0; gang < 40; gang += 1) {
      const on = [gang, gang + 7, gang + 19].map((index) => [names[index % names.length] ?? '', 2]);
      cluster.holder({ on: Object.fromEntries(on), lost: 100 + ((gang * 37) % 50) });
    }
    const result = cluster.job({ nodes: 30, gpus: 8, priority: 90 }).plan();

    expect(result.keptFor(1)).toHaveLength(30);
    expect(new Set(result.victimsOf(1)).size).toBeLessThan(40);
    expectNoneSuperfluous(cluster.view, result);
  });

  it('are not superfluous either where too many are on one node to try every choice', () => {
    const cluster = aCluster().node({ gpus: 50 });
    for (let small = 1; small <= 20; small += 1) cluster.holder({ on: { 'node-1': 1 }, lost: small });
    const result = cluster
      .holder({ on: { 'node-1': 30 }, lost: 1_000 })
      .job({ gpus: 40, priority: 90 })
      .plan();

    expect(result.victimsOf(1)).toEqual([...Array.from({ length: 10 }, (_, index) => 901 + index), 921]);
    expectNoneSuperfluous(cluster.view, result);
  });
});

describe('one pass after the other', () => {
  /** The cluster as it is when everything has been carried out, and nothing has ended yet. */
  function afterwards(view: SchedulerView, decisions: ReturnType<typeof plan>): SchedulerView {
    const preemptors = new Map(
      decisions.flatMap((each) => (each.kind === 'preempt' ? [[each.victim.id, each.by.id]] : [])),
    );
    const started = new Map(
      decisions.flatMap((each) => (each.kind === 'start' ? [[each.jobId, each.tasks]] : [])),
    );
    const holders = view.holders.map((holder) =>
      preemptors.has(holder.id)
        ? { ...holder, state: 'preempted' as const, preemptor: preemptors.get(holder.id) ?? null }
        : holder,
    );
    const added = view.queue.flatMap((job): Holder[] => {
      const tasks = started.get(job.id);
      if (tasks === undefined) return [];
      const { id, submitSeq, spec } = job;
      const { priority } = spec;
      return [
        {
          id,
          submitSeq,
          priority,
          tasks,
          state: 'active',
          preemptor: null,
          isPreemptible: true,
          lostGpuSeconds: 0,
          lostSince: null,
        },
      ];
    });
    const nodes = view.nodes.map((node) => {
      const taken = added.flatMap(({ tasks }) => tasks.filter((task) => task.node === node.name));
      const uuids = new Set(taken.flatMap(({ gpuUuids }) => gpuUuids));
      return {
        ...node,
        freeGpus: node.freeGpus.filter(({ uuid }) => !uuids.has(uuid)),
        freeCpus: taken.reduce((left, { cpus }) => left - cpus, node.freeCpus),
        freeMemoryMb: taken.reduce((left, { memoryMb }) => left - memoryMb, node.freeMemoryMb),
        freeTasks: node.freeTasks - taken.length,
      };
    });
    const queue = view.queue.filter(({ id }) => !started.has(id));
    return { ...view, nodes, queue, holders: [...holders, ...added] };
  }

  /** The preempted ones have ended, and are queued with their former submit order. */
  function ended(view: SchedulerView, specs: ReadonlyMap<string, QueuedJob>): SchedulerView {
    const gone = view.holders.filter(({ state }) => state === 'preempted');
    const nodes = view.nodes.map((node) => {
      const released = gone.flatMap(({ tasks }) => tasks.filter((task) => task.node === node.name));
      const uuids = new Set(released.flatMap(({ gpuUuids }) => gpuUuids));
      const freed = node.inventory.gpus.filter(({ uuid }) => uuids.has(uuid));
      return {
        ...node,
        freeGpus: [...node.freeGpus, ...freed],
        freeCpus: released.reduce((sum, { cpus }) => sum + cpus, node.freeCpus),
        freeMemoryMb: released.reduce((sum, { memoryMb }) => sum + memoryMb, node.freeMemoryMb),
        freeTasks: node.freeTasks + released.length,
      };
    });
    const back = gone.flatMap(({ id }) => specs.get(id) ?? []);
    return {
      ...view,
      nodes,
      queue: [...view.queue, ...back],
      holders: view.holders.filter((each) => !gone.includes(each)),
    };
  }

  const anyCluster = (upTo: UpTo) => {
    const cluster = aCluster();
    for (let node = 1 + upTo(3); node > 0; node -= 1) cluster.node({ gpus: 4, cpus: 16 });
    for (let job = 3 + upTo(9); job > 0; job -= 1) {
      cluster.job({ gpus: 1 + upTo(3), priority: 10 * upTo(4), nodes: 1 + Number(upTo(4) === 0) });
    }
    return cluster;
  };

  it('preempts nobody more while those that were asked are stopping', () => {
    const random = seededRandom(77);
    const upTo: UpTo = (maximum) => Math.floor(random() * (maximum + 1));
    let asked = 0;
    for (let situation = 0; situation < 600; situation += 1) {
      const cluster = anySituation(upTo);
      for (let more = upTo(3); more > 0; more -= 1)
        cluster.job({ gpus: 1 + upTo(2), priority: 10 * upTo(5) });
      // Checks what is true of every plan.
      cluster.plan();
      let { view } = cluster;
      let decisions = plan(view, nowMs);
      asked += decisions.filter(({ kind }) => kind === 'preempt').length;
      const waiting = new Map(
        decisions.flatMap((each) => (each.kind === 'hold' ? [[each.jobId, each]] : [])),
      );
      for (let pass = 0; pass < 3; pass += 1) {
        view = afterwards(view, decisions);
        decisions = plan(view, nowMs);
        const kept = new Set(decisions.flatMap((each) => (each.kind === 'hold' ? [each.jobId] : [])));
        for (const each of decisions) {
          if (each.kind === 'preempt')
            expect(waiting.has(each.by.id), `situation ${situation}: ${each.by.id} asks twice`).toBe(false);
        }
        for (const id of waiting.keys())
          expect(kept, `situation ${situation}: ${id} keeps its place`).toContain(id);
      }
    }
    expect(asked).toBeGreaterThan(200);
  });

  it('comes to rest: a preempted job never takes its placement back, and what outranks it runs', () => {
    const random = seededRandom(78);
    const upTo: UpTo = (maximum) => Math.floor(random() * (maximum + 1));
    let preempted = 0;
    for (let situation = 0; situation < 300; situation += 1) {
      const { view: all } = anyCluster(upTo);
      const specs = new Map(all.queue.map((job) => [job.id, job]));
      const [low, high] = [0, 1].map((half) => all.queue.filter(({ submitSeq }) => submitSeq % 2 === half));
      // Half of the jobs are there first.
      let view = afterwards({ ...all, queue: low ?? [] }, plan({ ...all, queue: low ?? [] }, nowMs));
      view = { ...view, queue: [...view.queue, ...(high ?? [])] };
      const pairs = new Set<string>();
      let decisions = plan(view, nowMs);
      for (let pass = 0; decisions.some(({ kind }) => kind === 'preempt' || kind === 'start'); pass += 1) {
        expect(pass, `situation ${situation} comes to rest`).toBeLessThan(50);
        for (const each of decisions) {
          if (each.kind !== 'preempt') continue;
          preempted += 1;
          pairs.add(`${each.by.id} ${each.victim.id}`);
          expect(pairs, 'nobody preempts back').not.toContain(`${each.victim.id} ${each.by.id}`);
        }
        view = ended(afterwards(view, decisions), specs);
        decisions = plan(view, nowMs);
      }
      expect(
        decisions.filter(({ kind }) => kind === 'hold'),
        'nobody waits for what will not come',
      ).toEqual([]);
    }
    expect(preempted).toBeGreaterThan(100);
  });
});

it('a job of equal priority is never preempted', () => {
  const cluster = aCluster()
    .node({ gpus: 1 })
    .holder({ on: { 'node-1': 1 }, priority: 50 });

  expect(cluster.job({ gpus: 1, priority: 50 }).plan().preemptions).toEqual([]);
  expect(cluster.job({ gpus: 1, priority: 51 }).plan().preemptions).toMatchObject([
    { by: { id: jobIdOf(2) } },
  ]);
});
