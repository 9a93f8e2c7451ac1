/** `aCluster().node({ gpus: 8 }).job({ gpus: 4 }).plan()`: situations for the planner, and what is true of every plan. */

import type { Gpu } from '@muster/common/hardware';
import type { ArrayId } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import { expect } from 'vitest';
import { anInventory, aSpec, jobIdOf, nodeNameOf, someGpus } from '../modelFixture.ts';
import { nodeTasksMax } from './capacity.ts';
import { type Decision, plan } from './plan.ts';
import { nowMs, sanityCheck } from './planCheckFixture.ts';
import type { WaitReason } from './reasons.ts';
import { topologyLabel } from './topology.ts';
import type {
  DependencyState,
  DrainedView,
  Holder,
  Pin,
  PlannedTask,
  QueuedJob,
  SchedulerNode,
  SchedulerView,
} from './view.ts';

export interface NodeOptions {
  readonly gpus?: number;
  /** Default: all of its GPUs. */
  readonly freeGpus?: number;
  /** How many are drained, from the first, which would be chosen first: these are not free, whatever `freeGpus` is. */
  readonly drainedGpus?: number;
  /** As a whole. */
  readonly drained?: boolean;
  /** Why it is drained. */
  readonly drainReason?: string;
  readonly gpu?: Partial<Gpu>;
  readonly cpus?: number;
  readonly freeCpus?: number;
  readonly memoryMb?: number;
  readonly freeMemoryMb?: number;
  readonly freeTasks?: number;
  readonly online?: boolean;
  readonly needsPreflight?: boolean;
  readonly awaitedUntilMs?: number | null;
  readonly drivers?: readonly string[];
  /** Its switches, the nearest first: `rack1/leaf1`. */
  readonly topology?: string;
}

type Resources = NonNullable<JobSpecFile['resources']>;

export interface JobOptions extends Resources {
  readonly image?: string;
  readonly priority?: number;
  readonly waitedMs?: number;
  readonly backoffMs?: number;
  readonly dependencies?: DependencyState;
  /** Names of nodes that it failed on, because an image was missing. */
  readonly excludedNodes?: readonly string[];
  /** Names of the nodes that see its newest checkpoint, the one that has it first. */
  readonly pinnedTo?: readonly string[];
  readonly breakerFailures?: number;
  readonly phase?: string;
  readonly resumes?: QueuedJob['resumes'];
  /** Equal jobs of its array behind it that the pass does not see. */
  readonly equals?: QueuedJob['equals'];
  /** The array of the job: at most `atOnce` of its jobs run at the same time, and `atWork` do. */
  readonly array?: { readonly id: ArrayId; readonly atOnce: number; readonly atWork: number };
}

/** By node name: how many of its free GPUs, and its CPUs. */
export interface HolderOptions {
  readonly on: Readonly<Record<string, number>>;
  readonly cpus?: number;
  readonly memoryMb?: number;
  readonly priority?: number;
  readonly state?: Holder['state'];
  /** Number of the job that preempts it. */
  readonly preemptor?: number;
  readonly isPreemptible?: boolean;
  readonly lost?: number;
  readonly lostSince?: Holder['lostSince'];
}

/** Their numbers count down from here: what runs was submitted before what waits. */
const firstHolder = 900;

/** Nodes are named node-1, node-2 …; jobs are numbered 1, 2 … in the order in which they were submitted. */
export class Cluster {
  private readonly nodes: SchedulerNode[] = [];
  private readonly queue: QueuedJob[] = [];
  private readonly holders: Holder[] = [];
  private readonly arraysAtWork = new Map<ArrayId, number>();

  node(options: NodeOptions = {}): this {
    const name = nodeNameOf(`node-${this.nodes.length + 1}`);
    const gpus = someGpus(name, options.gpus ?? 0, options.gpu);
    const inventory = anInventory({
      gpus,
      ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
      ...(options.memoryMb === undefined ? {} : { memoryMb: options.memoryMb }),
      ...(options.drivers === undefined ? {} : { drivers: options.drivers }),
      ...(options.topology === undefined ? {} : { labels: { [topologyLabel]: options.topology } }),
    });
    this.nodes.push({
      name,
      online: options.online ?? true,
      awaitedUntilMs: options.awaitedUntilMs ?? null,
      inventory,
      drained: this.drainedView(options, gpus),
      freeGpus: gpus.slice(options.drainedGpus ?? 0).slice(0, options.freeGpus ?? gpus.length),
      freeCpus: options.freeCpus ?? inventory.cpus,
      freeMemoryMb: options.freeMemoryMb ?? inventory.memoryMb,
      orphanedGpus: 0,
      needsPreflight: options.needsPreflight ?? false,
      freeTasks: options.freeTasks ?? nodeTasksMax,
    });
    return this;
  }

  private drainedView(
    { drained = false, drainedGpus = 0, drainReason }: NodeOptions,
    gpus: readonly Gpu[],
  ): DrainedView {
    const gpuUuids = new Set(gpus.slice(0, drainedGpus).map(({ uuid }) => uuid));
    const kinds = drained ? ['disk_read_only'] : gpuUuids.size > 0 ? ['xid_79'] : [];
    return { node: drained || drainReason !== undefined, gpuUuids, kinds, drainReason: drainReason ?? null };
  }

  /** An attempt that holds some of what was free until now; jobs 901, 902 … */
  holder(options: HolderOptions): this {
    const number = firstHolder + this.holders.length + 1;
    const { on, cpus = 0, memoryMb = 0, priority = 10, lost = 0 } = options;
    const tasks = Object.entries(on).map(([name, gpus]): PlannedTask => {
      const index = this.nodes.findIndex((node) => node.name === name);
      const node = this.nodes[index];
      if (node === undefined) throw new Error(`there is no ${name}`);
      const taken = node.freeGpus.slice(0, gpus);
      expect(taken, `${name} has ${gpus} free GPUs`).toHaveLength(gpus);
      this.nodes[index] = {
        ...node,
        freeGpus: node.freeGpus.slice(gpus),
        freeCpus: node.freeCpus - cpus,
        freeMemoryMb: node.freeMemoryMb - memoryMb,
        freeTasks: node.freeTasks - 1,
      };
      return { node: node.name, gpuUuids: taken.map(({ uuid }) => uuid), cpus, memoryMb };
    });
    this.holders.push({
      id: jobIdOf(number),
      submitSeq: number,
      priority,
      tasks,
      state: options.state ?? 'active',
      preemptor: options.preemptor === undefined ? null : jobIdOf(options.preemptor),
      isPreemptible: options.isPreemptible ?? true,
      lostGpuSeconds: lost,
      lostSince: options.lostSince === undefined ? 'start' : options.lostSince,
    });
    return this;
  }

  job(options: JobOptions = {}): this {
    const {
      image,
      priority,
      waitedMs = 0,
      backoffMs = 0,
      dependencies = { kind: 'met' },
      excludedNodes = [],
      pinnedTo = [],
      resumes = [],
      breakerFailures = null,
      phase = null,
      equals = null,
      array,
      ...resources
    } = options;
    const number = this.queue.length + 1;
    const file = {
      resources,
      ...(image === undefined ? {} : { image }),
      ...(priority === undefined ? {} : { priority }),
      ...(array === undefined ? {} : { array: `100%${array.atOnce}` }),
    };
    if (array !== undefined) this.arraysAtWork.set(array.id, array.atWork);
    this.queue.push({
      id: jobIdOf(number),
      submitSeq: number,
      array: array?.id ?? null,
      spec: aSpec(file),
      notBeforeMs: nowMs - waitedMs + backoffMs,
      waitingSinceMs: nowMs - waitedMs,
      dependencies,
      excludedNodes: new Map(excludedNodes.map((name) => [nodeNameOf(name), 'image_pull'])),
      resumes,
      pin: pinTo(pinnedTo),
      equals,
      breakerFailures,
      phase,
    });
    return this;
  }

  get view(): SchedulerView {
    const { nodes, queue, holders } = this;
    return {
      nodes: [...nodes],
      queue: [...queue],
      holders: [...holders],
      arraysAtWork: new Map(this.arraysAtWork),
    };
  }

  /** Plans, and checks what must hold for every plan. */
  plan(): Plan {
    const { view } = this;
    const decisions = plan(view, nowMs);
    sanityCheck(view, decisions);
    return new Plan(decisions);
  }
}

function pinTo(names: readonly string[]): Pin | null {
  const [node] = names.map(nodeNameOf);
  if (node === undefined) return null;
  return { node, nodes: new Set(names.map(nodeNameOf)), checkpoint: 'step 500', untilMs: null };
}

export function aCluster(): Cluster {
  return new Cluster();
}

/** Decisions by the number of their job. */
export class Plan {
  private readonly decisions: readonly Decision[];

  constructor(decisions: readonly Decision[]) {
    this.decisions = decisions;
  }

  /** null when it does not start. */
  startOf(job: number): Extract<Decision, { kind: 'start' }> | null {
    for (const each of this.decisions) if (each.kind === 'start' && each.jobId === jobIdOf(job)) return each;
    return null;
  }

  tasksOf(job: number): readonly PlannedTask[] | null {
    return this.startOf(job)?.tasks ?? null;
  }

  /** The nodes it starts on, by rank; null when it does not start. */
  nodesOf(job: number): readonly string[] | null {
    return this.tasksOf(job)?.map((task) => task.node) ?? null;
  }

  /** Why it does not start; null when it does. */
  reasonOf(job: number): WaitReason | null {
    for (const each of this.decisions)
      if (each.kind === 'wait' && each.jobId === jobIdOf(job)) return each.why();
    return null;
  }

  /** Numbers of the jobs that start, the first to be placed first. */
  get started(): readonly number[] {
    return this.decisions.filter((each) => each.kind === 'start').map((each) => Number(each.jobId.slice(4)));
  }

  /** Numbers of the jobs that this one preempts. */
  victimsOf(job: number): readonly number[] {
    return this.preemptions
      .filter(({ by }) => by.id === jobIdOf(job))
      .map(({ victim }) => Number(victim.id.slice(4)));
  }

  get preemptions(): readonly Extract<Decision, { kind: 'preempt' }>[] {
    return this.decisions.filter((each) => each.kind === 'preempt');
  }

  /** The nodes that a job is kept a place on; null: none. */
  keptFor(job: number): readonly string[] | null {
    const kept = this.decisions.find((each) => each.kind === 'hold' && each.jobId === jobIdOf(job));
    return kept?.kind === 'hold' ? kept.tasks.map(({ node }) => node) : null;
  }

  get reserved(): readonly { readonly job: number; readonly nodes: readonly string[] }[] {
    return this.decisions
      .filter((each) => each.kind === 'reserve')
      .map((each) => ({ job: Number(each.jobId.slice(4)), nodes: each.nodes }));
  }
}
