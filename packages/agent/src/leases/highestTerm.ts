/**
 * The highest term of a coordinator that this agent was welcomed in, kept in its data directory. One that comes with a
 * lower term was superseded, or restored from an old backup: what it wants is not to be done. Terms of one cluster only are
 * compared: an agent that has joined another begins anew.
 */
import { readFileSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { Logger } from '@muster/common/log';

export interface Term {
  /** 0: none yet. */
  readonly term: number;
  /** The coordinator's proof of it, to be said again; empty: an older coordinator. */
  readonly proof: string;
  /** Empty: unknown. */
  readonly clusterId: string;
}

export const noTerm: Term = { term: 0, proof: '', clusterId: '' };

export interface Terms {
  readonly highest: Term;
  /** @returns whether a coordinator of this term is to be followed; it is then the highest */
  admit(term: Term): boolean;
}

/** @returns whether a coordinator of this term is to be followed by an agent that has followed this highest one */
export function isFollowed(term: Term, highest: Term): boolean {
  const isOther = term.clusterId !== '' && highest.clusterId !== '' && term.clusterId !== highest.clusterId;
  return isOther || term.term >= highest.term;
}

/** @param path of a file, made when absent */
export function openHighestTerm(path: string, log: Logger): Terms {
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
        // This agent remembers it all the same; only the next one would not.
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
