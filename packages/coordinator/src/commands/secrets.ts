/** Commands about the secrets of projects. Their values come in encrypted. */
import { clusterSubject } from '@muster/common/eventKinds';
import type { Draft } from '../state/state.ts';
import type { StoredSecret } from '../store/secrets.ts';

export function setSecret(draft: Draft, secret: StoredSecret, nowMs: number): void {
  const { project, name, createdAtMs, changedAtMs } = secret;
  draft.secrets.put(secret);
  const data = { project, name, replaced: createdAtMs !== changedAtMs };
  draft.emit({ kind: 'secret.set', subject: clusterSubject, data }, nowMs);
}

export function removeSecret(
  draft: Draft,
  { project, name }: Pick<StoredSecret, 'project' | 'name'>,
  nowMs: number,
): void {
  draft.secrets.remove({ project, name });
  draft.emit({ kind: 'secret.removed', subject: clusterSubject, data: { project, name } }, nowMs);
}

/** @param secrets all that there are, encrypted with another key */
export function replaceSecretKey(draft: Draft, secrets: readonly StoredSecret[], nowMs: number): void {
  for (const secret of secrets) draft.secrets.put(secret);
  const data = { secrets: secrets.length };
  draft.emit({ kind: 'secret.key_rotated', subject: clusterSubject, data }, nowMs);
}
