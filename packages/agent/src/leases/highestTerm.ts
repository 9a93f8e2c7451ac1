/**
 * The highest term in which a coordinator has welcomed this agent, kept in the data directory. A coordinator with a lower term
 * was superseded, or restored from an old backup, and the agent refuses it. It also refuses another coordinator of the same
 * term. Only terms of one cluster are compared: an agent that has joined another cluster starts from 0.
 */
import { readFileSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { Logger } from '@muster/common/log';

export interface Term {
  /** The highest term; 0: none yet. */
  readonly term: number;
  /** The proof of the term by the coordinator, which Hello repeats; empty: from an older coordinator. */
  readonly proof: string;
  /** The cluster of the term; empty: unknown. */
  readonly clusterId: string;
}

export const noTerm: Term = { term: 0, proof: '', clusterId: '' };

export interface HighestTerm {
  readonly highest: Term;
  /** @returns whether the agent follows a coordinator of this term; if so, the term is the highest now */
  admit(term: Term): boolean;
}

/** @returns whether an agent with this highest term follows a coordinator of that term */
export function isFollowed(term: Term, highest: Term): boolean {
  const isOther = term.clusterId !== '' && highest.clusterId !== '' && term.clusterId !== highest.clusterId;
  return (
    isOther || term.term > highest.term || (term.term === highest.term && !isOfAnotherRun(term, highest))
  );
}

/** True for two coordinators of one term, as of a data directory that was copied: the proof of a term names its run. */
export function isOfAnotherRun(term: Term, highest: Term): boolean {
  return (
    term.term === highest.term && term.proof !== '' && highest.proof !== '' && term.proof !== highest.proof
  );
}

/** @param path of the file, which is created if it does not exist */
export function openHighestTerm(path: string, log: Logger): HighestTerm {
  let highest = readTerm(path);
  return {
    get highest() {
      return highest;
    },
    admit(welcomed) {
      if (!isFollowed(welcomed, highest)) return false;
      const { term, proof, clusterId } = welcomed;
      if (term === highest.term && proof === highest.proof && clusterId === highest.clusterId) return true;
      highest = { term, proof, clusterId };
      try {
        writeFileDurably(path, `${term} ${proof} ${clusterId}\n`, 0o600);
      } catch (error) {
        // This agent keeps the term in memory; only the next agent would not have it.
        log.error(
          { path, term, error: messageOf(error) },
          'the term of the coordinator could not be written down',
        );
      }
      return true;
    },
  };
}

function readTerm(path: string): Term {
  try {
    const [number, proof = '', clusterId = ''] = readFileSync(path, 'utf8').trimEnd().split(' ');
    const term = Number(number);
    return Number.isSafeInteger(term) && term > 0 ? { term, proof, clusterId } : noTerm;
  } catch {
    return noTerm;
  }
}
