/** Keys and certificates of nodes, and the TLS of coordinators that run in the process of a test. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { certificateRequest } from '@muster/agent/session/certificateRequest';
import { silentLogger } from '@muster/common/log';
import type { ClientIdentity } from '@muster/common/wire/trust';
import type { TestCoordinator } from '@muster/coordinator/coordinatorFixture';
import { join } from '@muster/coordinator/rpc/agentFixture';
import { openServerTls } from '@muster/coordinator/tls/serverTls';

/** PEM, of the only kind that nodes may have. */
export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** As an agent asks for the certificate of its key. @returns PEM */
export function requestFor(privateKey: string, nodeName: string): Promise<string> {
  return certificateRequest(privateKey, nodeName);
}

/** A node that joins a coordinator with TLS. @returns what its agent proves itself by */
export async function joinByCertificate(
  coordinator: Pick<TestCoordinator, 'api' | 'client'>,
  nodeName: string,
  privateKey: string = newKey(),
): Promise<ClientIdentity> {
  const { token } = await coordinator.api.createJoinToken(nodeName);
  const credential = await requestFor(privateKey, nodeName);
  const answer = await join(coordinator.client(), { nodeName, credential, joinToken: token });
  if (answer?.certificate === undefined) throw new Error('no certificate was returned');
  return { privateKey, certificate: answer.certificate };
}

/** For `startTestCoordinator`: TLS by a CA of its own, which clients verify by the clock of this machine. */
export const ownTls = {
  wallMs: Date.now,
  open: (dataDir: string) =>
    openServerTls({
      dataDir,
      clusterId: 'test',
      host: '0.0.0.0',
      advertise: [],
      random: (size) => randomBytes(size),
      wallMs: Date.now,
      log: silentLogger,
    }),
};
