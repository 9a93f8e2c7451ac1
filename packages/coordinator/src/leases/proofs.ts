/**
 * What this store has said to agents, in a form that it can tell from anything else. Each term and each task that an agent
 * is told comes with a proof, which the agent says again in its Hello. Whoever says of a task or a term that this store has
 * never heard of, and can prove it, shows that the store is a copy older than itself. Whoever cannot says it of itself only.
 *
 * A proof is a keyed hash. Its key is made with the store and is in every copy of it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { NodeName, RandomBytes, TaskRef } from '@muster/common/ids';
import { taskKey } from '@muster/common/ids';
import type { MetaStore } from './metaStore.ts';

const metaName = 'proof_key';
const keyBytes = 32;
/** 128 bits as base64url. */
const macLength = 22;

export class Proofs {
  private readonly key: Uint8Array;

  constructor(key: Uint8Array) {
    this.key = key;
  }

  /** With the key of this store, which is made when there is none yet. */
  static async open(store: Pick<MetaStore, 'readMeta' | 'writeMeta'>, random: RandomBytes): Promise<Proofs> {
    const text = await store.readMeta(metaName);
    if (text !== null) return new Proofs(Buffer.from(text, 'hex'));
    const key = random(keyBytes);
    await store.writeMeta(metaName, Buffer.from(key).toString('hex'));
    return new Proofs(key);
  }

  /** That a node was welcomed in this term. */
  ofTerm(node: NodeName, term: number): string {
    return this.mac(`term ${node} ${term}`);
  }

  isOfTerm(node: NodeName, term: number, proof: string): boolean {
    return isEqual(proof, this.ofTerm(node, term));
  }

  /** That a node was given this task. @param submitSeq of its job: tells later whether the store should know of it */
  ofTask(node: NodeName, task: TaskRef, submitSeq: number): string {
    return `${submitSeq}.${this.mac(`task ${node} ${taskKey(task)} ${submitSeq}`)}`;
  }

  /** @returns the number of submission of the task's job; null: this store did not give that task to this node */
  submitSeqOf(node: NodeName, task: TaskRef, proof: string): number | null {
    const submitSeq = Number(/^(\d{1,15})\./.exec(proof)?.[1] ?? Number.NaN);
    return Number.isInteger(submitSeq) && isEqual(proof, this.ofTask(node, task, submitSeq))
      ? submitSeq
      : null;
  }

  private mac(text: string): string {
    return createHmac('sha256', this.key).update(text).digest('base64url').slice(0, macLength);
  }
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
