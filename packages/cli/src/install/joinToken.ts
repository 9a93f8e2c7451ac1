/** Where the agent of a machine has its join token from. */
import { credentialFile } from '@muster/agent/session/credential';
import { hasJoined } from '../agentFlags.ts';

interface JoinFacts {
  /** As `joinedIn` returns it. */
  readonly joined: boolean | null;
  /** An image is installed into: its agent is started elsewhere. */
  readonly isImage: boolean;
  /** The coordinator of this machine can be asked. */
  readonly hasCoordinator: boolean;
  /** A file with a token is there, whose age nobody knows. */
  readonly hasTokenFile: boolean;
}

/** Pure. @returns `own`: it needs none, or has one where its settings say */
export function joinTokenSource(facts: JoinFacts): 'own' | 'made' | 'missing' {
  const { joined, isImage, hasCoordinator, hasTokenFile } = facts;
  if (joined === true || isImage) return 'own';
  // One that is there may have expired, and nothing would replace it.
  if (hasCoordinator) return 'made';
  return joined === false || hasTokenFile ? 'own' : 'missing';
}

/** @returns whether the coordinator is known to have taken the credential; null: there is none */
export function joinedIn(dataDir: string): boolean | null {
  if (!hasJoined(dataDir)) return null;
  try {
    return credentialFile(dataDir).read()?.joined ?? null;
  } catch {
    // A damaged one is reported by the agent, with the remedy; a call of --dry-run may not be allowed to read it.
    return true;
  }
}
