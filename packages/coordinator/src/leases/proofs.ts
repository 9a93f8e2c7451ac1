/**
 * Proofs that this store has sent something to an agent. Each term and each task that is sent to an agent comes with a proof, and
 * the agent repeats it in its Hello. A valid proof of a task or a term that this store does not have shows that the store is
 * an old copy. A claim without proof counts only for the node that makes it.
 *
 * A proof is a keyed hash. Its key is made with the store, and is in every copy of it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { NodeName, RandomBytes, TaskRef } from '@muster/common/ids';
import { taskKey } from '@muster/common/ids';
import type { MetaStore } from './metaStore.ts';

const metaName = 'proof_key';
const keyBytes = 32;
/** The length of a proof: 128 bits as base64url. */
const macLength = 22;

export class Proofs {
  private readonly key: Uint8Array;

  constructor(key: Uint8Array) {
    this.key = key;
  }

  /** Uses the key of this store, and makes it when there is none yet. */
  static async open(store: Pick<MetaStore, 'readMeta' | 'writeMeta'>, random: RandomBytes): Promise<Proofs> {
    const text = await store.readMeta(metaName);
    if (text !== null) return new Proofs(Buffer.from(text, 'hex'));
    const key = random(keyBytes);
    await store.writeMeta(metaName, Buffer.from(key).toString('hex'));
    return new Proofs(key);
  }

  /**
   * The proof that a node was welcomed in this term.
   * @param run random part of the term, by which two coordinators of one term are told apart; empty: of before there was one
   */
  ofTerm(node: NodeName, term: number, run = ''): string {
    return run === ''
      ? this.mac(`term ${node} ${term}`)
      : `${run}.${this.mac(`term ${node} ${term} ${run}`)}`;
  }

  isOfTerm(node: NodeName, term: number, proof: string): boolean {
    return this.runOfTerm(node, term, proof) !== null;
  }

  /** Returns the random part of a proven term, empty for a proof without one. Null if it proves nothing. */
  runOfTerm(node: NodeName, term: number, proof: string): string | null {
    const run = /^([\w-]{1,32})\./.exec(proof)?.[1] ?? '';
    return isEqual(proof, this.ofTerm(node, term, run)) ? run : null;
  }

  /** The proof that a node was given this task. @param submitSeq of the job: shows later whether the store should have it */
  ofTask(node: NodeName, task: TaskRef, submitSeq: number): string {
    return `${submitSeq}.${this.mac(`task ${node} ${taskKey(task)} ${submitSeq}`)}`;
  }

  /** @returns `submitSeq` of the job of the task; null: this store did not give that task to this node */
  submitSeqOf(node: NodeName, task: TaskRef, proof: string): number | null {
    const submitSeq = Number(/^(\d{1,15})\./.exec(proof)?.[1] ?? Number.NaN);
    return Number.isInteger(submitSeq) && isEqual(proof, this.ofTask(node, task, submitSeq))
      ? submitSeq
      : null;
  }

  /** The proof that this store issued a continuity token to a node. @param body the token without its proof */
  ofContinuity(node: NodeName, body: string): string {
    return this.mac(`continuity ${node} ${body}`);
  }

  isOfContinuity(node: NodeName, body: string, proof: string): boolean {
    return isEqual(proof, this.ofContinuity(node, body));
  }

  private mac(text: string): string {
    return createHmac('sha256', this.key).update(text).digest('base64url').slice(0, macLength);
  }
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
