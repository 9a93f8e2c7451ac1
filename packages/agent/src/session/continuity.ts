/**
 * The continuity tokens of this agent: show to the coordinator that this data directory is the one that was welcomed last,
 * and no copy of it. The next token is on disk before it is confirmed, beside the one before. So after a crash at any moment
 * one of the two is accepted.
 */
import { closeSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { Logger } from '@muster/common/log';

/** What tells this machine from another one that has a copy of its disk. */
export interface MachineIdentity {
  readonly hostName: string;
  /** Null if the agent's user may not read it, or there is none. */
  readonly firmwareUuid: string | null;
  /** Hardware addresses of network cards. Virtual interfaces have none of their own, and get others at each start. */
  readonly cardAddresses: readonly string[];
}

export interface ContinuityTokens {
  /** Newest first: the one that was offered last, and the one before it. Empty before the first. */
  readonly tokens: readonly string[];
  /** Stores tokens, newest first. Returns false if they cannot be stored; then the earlier ones stay. */
  keep(tokens: readonly string[]): boolean;
}

/** @param path of the file, which is created with the first token */
export function openContinuityTokens(path: string, log: Logger): ContinuityTokens {
  let tokens = read(path, log);
  return {
    get tokens() {
      return tokens;
    },
    keep(next) {
      try {
        writeFileDurably(path, `${next.join('\n')}\n`, 0o600);
        tokens = next;
        return true;
      } catch (error) {
        log.error({ path, error: messageOf(error) }, 'the continuity token of this node could not be stored');
        // A write that failed at its last step has replaced the file anyway.
        tokens = read(path, log);
        return false;
      }
    },
  };
}

/** Syncs the file first: a token that is presented must outlive a power cut, and an earlier write may have failed half-way. */
function read(path: string, log: Logger): readonly string[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return [];
  }
  try {
    for (const each of [path, dirname(path)]) syncPath(each);
  } catch (error) {
    log.warn({ path, error: messageOf(error) }, 'the continuity token of this node could not be synced');
  }
  return text.split('\n').filter((line) => line !== '');
}

function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
