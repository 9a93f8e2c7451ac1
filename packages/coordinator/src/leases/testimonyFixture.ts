/** What agents of the store of a test say in their Hellos, with proof and without. */
import type { NodeName, TaskRef } from '@muster/common/ids';
import { taskKey } from '@muster/common/ids';
import type { TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf } from '../modelFixture.ts';
import { Proofs } from './proofs.ts';
import type { AgentAccount } from './testimony.ts';

/** Of the stores of these tests. */
export const someProofs = new Proofs(new Uint8Array(32));

/** Each of its tasks with the number of submission that its proof names; null: without proof. */
export interface AccountFields {
  readonly node?: NodeName;
  readonly highestTerm?: number;
  readonly isTermProven?: boolean;
  readonly tasks?: readonly (readonly [TaskRef, submitSeq: number | null])[];
}

export function accountOf(
  { node = nodeNameOf('node-1'), highestTerm = 0, isTermProven = true, tasks = [] }: AccountFields,
  proofs: Proofs = someProofs,
): AgentAccount {
  const proven = tasks.flatMap(([task, submitSeq]) =>
    submitSeq === null ? [] : [[taskKey(task), proofs.ofTask(node, task, submitSeq)] as const],
  );
  return {
    node,
    highestTerm,
    termProof: isTermProven ? proofs.ofTerm(node, highestTerm) : '',
    observed: tasks.map(([task]) => ({ task })),
    proofs: new Map(proven),
  };
}

/** The agent of this node proves that this store has been in that term. */
export function provesTerm({ memory, leases }: TestCoordinator, node: NodeName, highestTerm: number): void {
  const proofs = new Proofs(Buffer.from(memory.meta.get('proof_key') ?? '', 'hex'));
  leases.checkAccount(accountOf({ node, highestTerm }, proofs));
}
