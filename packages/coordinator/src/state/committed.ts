import type { NodeName } from '@muster/common/ids';
import type { Job, StoredEvent } from '../model.ts';
import type { Batch } from '../store/store.ts';

/** What a committed draft changed; what talks to agents and watchers starts from here. */
export interface Committed {
  /** As they are now, ended ones included. */
  readonly jobs: readonly Job[];
  /** Every attempt that began, changed or ended; several of one job when it went through the queue in between. */
  readonly attempts: Batch['attempts'];
  readonly events: readonly StoredEvent[];
  /** Ids of credentials that are no longer valid. */
  readonly endedCredentials: readonly string[];
  readonly removedNodes: readonly NodeName[];
  /** Names of users who have another role or other projects now. Removed ones are among them. */
  readonly changedUsers: readonly string[];
  /** Names of alerts that were set or deleted. */
  readonly changedAlerts: readonly string[];
}

/** Of what a draft has changed, by name, the names of what it has removed. */
export function removedOf<Name>(changed: ReadonlyMap<Name, unknown>): readonly Name[] {
  return [...changed].flatMap(([name, value]) => (value === null ? [name] : []));
}

/** Brings a map to what a draft has changed of it; null: removed. */
export function applyChanges<Name, Value>(
  map: Map<Name, Value>,
  changed: ReadonlyMap<Name, Value | null>,
): void {
  for (const [name, value] of changed) {
    if (value === null) map.delete(name);
    else map.set(name, value);
  }
}
