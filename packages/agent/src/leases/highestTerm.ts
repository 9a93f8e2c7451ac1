/**
 * The highest term of a coordinator that this agent was welcomed in, kept in its data directory. One that comes with a
 * lower term was superseded, or restored from an old backup: what it wants is not to be done.
 */
import { readFileSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { Logger } from '@muster/common/log';

export interface Terms {
  /** 0: none yet. */
  readonly highest: number;
  /** @returns whether a coordinator of this term is to be followed; it is then the highest */
  admit(term: number): boolean;
}

/** @param path of a file, made when absent */
export function openHighestTerm(path: string, log: Logger): Terms {
  let highest = readTerm(path);
  return {
    get highest() {
      return highest;
    },
    admit(term) {
      if (term < highest) return false;
      if (term === highest) return true;
      highest = term;
      try {
        writeFileDurably(path, `${term}\n`, 0o600);
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

function readTerm(path: string): number {
  try {
    const term = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(term) && term > 0 ? term : 0;
  } catch {
    return 0;
  }
}
