/** A node that is given away, or that was a mistake, is forgotten. */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';
import { revoke } from './credentials.ts';

const namedMax = 3;

/**
 * Ends the node's credential and forgets the node. What its agent says after that is refused.
 * @throws {MusterError} `not_found`; `failed_precondition` while it has tasks that have not ended: as long as nobody knows
 *   that nothing of them runs there, the node is what tells
 */
export function removeNode(draft: Draft, name: NodeName, nowMs: number): void {
  if (draft.node(name) === undefined && draft.credentialsOf(name).length === 0)
    throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
  const jobs = new Set((heldTasks(draft.activeJobs()).get(name) ?? []).map(({ job }) => job.id));
  if (jobs.size > 0) {
    const some = [...jobs].slice(0, namedMax).join(', ');
    const more = jobs.size > namedMax ? ` and ${jobs.size - namedMax} more` : '';
    throw new MusterError(
      'failed_precondition',
      `${name} has tasks of ${some}${more} that have not ended; reschedule them with \`muster node drain ${name} ` +
        `--deadline 0s\`, or, if the machine is certainly dead: muster node confirm-dead ${name}`,
    );
  }
  if (draft.credentialsOf(name).length > 0) revoke(draft, name, nowMs);
  if (draft.node(name) === undefined) return;
  draft.removeNode(name);
  draft.emit({ kind: 'node.removed', subject: name, data: {} }, nowMs);
}
