/** Decodes the report that a task is prepared, kept within bounds: its addresses and its look are stored. */
import { type CheckpointLook, lookFoundMax } from '@muster/common/checkpoints';
import type { Prepared__Output } from '@muster/common/gen/muster/v1/Prepared';
import type { TaskRef } from '@muster/common/ids';
import { endpointFromWire, lookFromWire } from '@muster/common/wire/codec';
import type { JobEvent } from '../lifecycle/transition.ts';
import { boundedCheckpoint, line } from './trainingMessages.ts';

/** Addresses of one node: more than any machine has, and little enough to store with every attempt. */
const endpointsMax = 64;

/** @returns the event of the job. Found checkpoints that no agent of ours could describe so are omitted */
export function preparedEvent({ attempt, nodeRank }: TaskRef, prepared: Prepared__Output): JobEvent {
  const { master, endpoints, testPort = null, look } = prepared;
  return {
    kind: 'prepared',
    attempt,
    nodeRank,
    master,
    endpoints: endpoints.slice(0, endpointsMax).map(endpointFromWire),
    testPort,
    look: look === null || nodeRank !== 0 ? null : boundedLook(lookFromWire(look)),
  };
}

function boundedLook(look: CheckpointLook): CheckpointLook {
  const found = look.found.slice(0, lookFoundMax).flatMap((each) => {
    const checkpoint = boundedCheckpoint(each.checkpoint);
    return checkpoint === null ? [] : { ...each, checkpoint };
  });
  return { ...look, found, problem: look.problem === null ? null : line(look.problem) };
}
