/**
 * What an attempt resumes from, and jobs whose newest checkpoint lies on the disk of one machine. They start only where one of their nodes is on that
 * machine, and that one is node rank 0, which is the one that saves and loads where only one rank does.
 */

import type { JobResources } from '@muster/common/spec/types';
import type { Resume } from '@muster/common/views';
import { fitsEmpty, hasRoom, isLeftByDrains, type JobDemand } from './capacity.ts';
import { type CheckpointAway, drainOf } from './reasons.ts';
import { byPlace, nearestGroups, switchPath } from './topology.ts';
import { isBoundToOneSwitch } from './topologyGroups.ts';
import type { Pin, PlannedTask, ResumeOption, SchedulerNode } from './view.ts';

/**
 * As many of these nodes as the job can use, by rank, the first of which sees the checkpoint and the others near to it.
 * @param ordered with room for one task each, in the order in which they are taken when nothing else tells them apart
 * @returns null when there are not enough with that node among them
 */
export function anchoredGang(
  ordered: readonly SchedulerNode[],
  resources: JobResources,
  pin: Pin,
): readonly SchedulerNode[] | null {
  const anchors = ordered.filter(({ name }) => pin.nodes.has(name));
  for (const anchor of anchors) {
    const within = reachOf(anchor, ordered, resources);
    const size = Math.min(within.length, resources.nodes);
    if (size < resources.minNodes) continue;
    const others = within
      .filter((node) => node !== anchor)
      .sort((a, b) => sharedSwitches(b, anchor) - sharedSwitches(a, anchor))
      .slice(0, size - 1);
    return [anchor, ...others.sort(byPlace)];
  }
  return null;
}

/** The nodes that a gang with this one in it can have. */
function reachOf(
  anchor: SchedulerNode,
  nodes: readonly SchedulerNode[],
  resources: JobResources,
): readonly SchedulerNode[] {
  if (!isBoundToOneSwitch(resources)) return nodes;
  return nearestGroups(nodes).find((group) => group.nodes.includes(anchor))?.nodes ?? [];
}

/** How many switches two nodes have in common, from the farthest on. */
function sharedSwitches(a: SchedulerNode, b: SchedulerNode): number {
  const [ofA, ofB] = [switchPath(a).toReversed(), switchPath(b).toReversed()];
  const differs = ofA.findIndex((name, level) => name !== ofB[level]);
  return differs < 0 ? ofA.length : differs;
}

/**
 * @param resumes the best first
 * @returns the best one that an attempt on these nodes can read. null: it starts from scratch
 */
export function resumeOn(
  resumes: readonly ResumeOption[],
  tasks: readonly Pick<PlannedTask, 'node'>[],
): Resume | null {
  const best = resumes.find(({ readers }) => readers === null || tasks.some(({ node }) => readers.has(node)));
  return best === undefined ? null : { name: best.name, step: best.step };
}

/**
 * @param homes the nodes that see its checkpoint, as far as they are there
 * @param reserved kept for a job that comes first
 * @returns null when one of them has room
 */
export function whyPinned(
  homes: readonly SchedulerNode[],
  reserved: ReadonlySet<string>,
  demand: JobDemand,
  pin: Pin,
): CheckpointAway | null {
  if (homes.some((node) => hasRoom(node, demand) && !reserved.has(node.name))) return null;
  const home = homes.find(({ name }) => name === pin.node);
  return pinned(pin, stateOf(home, reserved, demand));
}

/** Its place has room, but it is bound to one switch, and under that one there are too few others. */
export function whyNotAround(pin: Pin): CheckpointAway {
  return pinned(pin, 'lonely');
}

function pinned({ checkpoint, node }: Pin, home: CheckpointAway['home']): CheckpointAway {
  return { kind: 'checkpoint', checkpoint, node, home };
}

function stateOf(
  home: SchedulerNode | undefined,
  reserved: ReadonlySet<string>,
  demand: JobDemand,
): CheckpointAway['home'] {
  if (home === undefined || !fitsEmpty(home, demand)) return 'unsuitable';
  if (!home.online) return 'silent';
  if (!isLeftByDrains(home, demand)) return drainOf(home);
  return reserved.has(home.name) ? 'reserved' : 'busy';
}
