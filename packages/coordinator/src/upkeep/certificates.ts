/** When the certificates that a cluster works with end: whoever watches that is never surprised by it. */
import type { CertificateEnd } from '@muster/common/upkeep';
import type { ClusterState } from '../state/state.ts';
import type { OwnCertificateEnds } from '../tls/serverTls.ts';

/**
 * @param own null: there is no TLS, and so agents prove themselves by secrets and there is no certificate at all
 * @returns those of the coordinator first, then nodes by name
 */
export function certificateEnds(
  own: OwnCertificateEnds | null,
  { credentials }: Pick<ClusterState, 'credentials'>,
): readonly CertificateEnd[] {
  if (own === null) return [];
  const nodes = [...credentials.values()].flatMap(({ kind, subject, expiresAtMs }): CertificateEnd[] =>
    kind === 'agent' && expiresAtMs !== null ? [{ kind: 'node', node: subject, expiresAtMs }] : [],
  );
  return [
    { kind: 'ca', node: null, expiresAtMs: own.authorityMs },
    { kind: 'server', node: null, expiresAtMs: own.serverMs },
    ...nodes.toSorted((a, b) => ((a.node ?? '') < (b.node ?? '') ? -1 : 1)),
  ];
}
