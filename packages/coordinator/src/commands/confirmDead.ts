/** Proof from outside that a node is dead: a user confirms it, or a fencing command succeeds. */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import { type Caller, callerName } from '../caller.ts';
import { endLostTasks } from '../leases/leases.ts';
import type { Draft } from '../state/state.ts';

/** The origin of the proof. */
export type Proof =
  | { readonly kind: 'person'; readonly caller: Caller }
  | { readonly kind: 'fence_command'; readonly silence: number };

/**
 * Ends every task of the node as lost, those that are never fenced included. Idempotent.
 * @throws {MusterError} `failed_precondition` when the node responds, or has responded since the proof was begun
 * @returns the silence during which the tasks were ended, for `AgentRegistry.noteDead` after the commit
 */
export function confirmDead(
  draft: Draft,
  agents: AgentRegistry,
  node: NodeName,
  proof: Proof,
  nowMs: number,
): number {
  const silence = agents.silenceOf(node);
  if (silence === null) {
    throw new MusterError(
      'failed_precondition',
      `${node} responds, or stopped responding a moment ago: it is not dead, and \`muster stop\` ends its jobs; try again once ` +
        '`muster nodes` shows it as silent',
    );
  }
  if (proof.kind === 'fence_command' && proof.silence !== silence.number)
    throw new MusterError('failed_precondition', `${node} was heard after the fencing command was started`);
  const by = proof.kind === 'person' ? callerName(proof.caller).by : 'fence command';
  const silentForMs = agents.silentForMs(node);
  const lastHeardMs = silentForMs === null ? null : nowMs - silentForMs;
  const loss = { message: `node ${node} is dead, confirmed by ${by}`, lastHeardMs };
  const tasks = endLostTasks(draft, node, () => true, loss, nowMs);
  if (!silence.isDead || tasks.length > 0)
    draft.emit({ kind: 'node.confirmed_dead', subject: node, data: { by, tasks } }, nowMs);
  return silence.number;
}
