/** Proof of death from outside: a person's word, or the success of a fencing command. */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import type { AgentRegistry } from '../agents/registry.ts';
import { type Caller, nameOf } from '../caller.ts';
import { endLostTasks } from '../leases/lostTasks.ts';
import type { Draft } from '../state/state.ts';

/** Who says so. */
export type Proof =
  | { readonly kind: 'person'; readonly caller: Caller }
  | { readonly kind: 'fence_command'; readonly silence: number };

/**
 * Ends every task of the node as lost, those that are never fenced, too. Done twice it is done once.
 * @throws {MusterError} `failed_precondition` when the node answers, or has answered since the proof was begun
 * @returns the silence that this ends the tasks of, for `AgentRegistry.noteDead` once it is committed
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
  const by = proof.kind === 'person' ? nameOf(proof.caller).by : 'fence command';
  const silentForMs = agents.silentForMs(node);
  const lastHeardMs = silentForMs === null ? null : nowMs - silentForMs;
  const loss = { message: `node ${node} is dead, confirmed by ${by}`, lastHeardMs };
  const tasks = endLostTasks(draft, node, () => true, loss, nowMs);
  if (!silence.isDead || tasks.length > 0)
    draft.emit({ kind: 'node.confirmed_dead', subject: node, data: { by, tasks } }, nowMs);
  return silence.number;
}
