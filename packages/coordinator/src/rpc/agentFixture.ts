/** An agent's end of the protocol, for tests: it sends and receives what a test wants. */

import { type Client, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { JoinResponse__Output } from '@muster/common/gen/muster/v1/JoinResponse';
import { inventoryToWire } from '@muster/common/wire/codec';
import { protocolVersionMin } from '@muster/common/wire/protocol';
import { agentHubService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import { expect, vi } from 'vitest';
import { type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { anInventory, someGpus } from '../modelFixture.ts';

export interface Trade {
  readonly nodeName: string;
  readonly credential: string;
  readonly joinToken: string;
}

export const credentialOf = (name: string) => `muster_agent_${name.padEnd(43, 'x')}`;

/** @param bearer what it shows as its own */
export function join(
  client: Client,
  request: Trade,
  bearer = request.joinToken,
): Promise<JoinResponse__Output | undefined> {
  const { path, requestSerialize, responseDeserialize } = agentHubService.Join;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      withToken(bearer),
      (error, answer) => (error === null ? resolve(answer) : reject(fromServiceError(error))),
    );
  });
}

/** A node that has joined. @returns its token */
export async function joined({ api }: TestCoordinator, client: Client, nodeName: string): Promise<string> {
  const { token } = await api.createJoinToken(nodeName);
  const credential = credentialOf(nodeName);
  await join(client, { nodeName, credential, joinToken: token });
  return credential;
}

/** Both directions of one session. @param token null: the certificate of the connection says who it is */
export function openSession(client: Client, token: string | null) {
  const { path, requestSerialize, responseDeserialize } = agentHubService.Session;
  const call = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    token === null ? new Metadata() : withToken(token),
  );
  const received: CoordinatorMessage__Output[] = [];
  const errors: ServiceError[] = [];
  call.on('data', (message: CoordinatorMessage__Output) => received.push(message));
  call.on('error', (error: ServiceError) => errors.push(error));
  return {
    received,
    errors,
    send: (message: AgentMessage) => void call.write(message),
    cancel: () => call.cancel(),
  };
}

/** Of one GPU, `GPU-a-0`. */
export const inventory = inventoryToWire(anInventory({ gpus: someGpus('a', 1), cpus: 8, memoryMb: 1_000 }));

export function helloMessage(fields: object = {}): AgentMessage {
  const identity = { protocolVersion: protocolVersionMin, agentVersion: '1', instanceId: 'i', bootId: 'b' };
  return { hello: { ...identity, inventory, observed: [], ...fields } };
}

/** A node with a session that was welcomed. */
export async function connected(
  coordinator: TestCoordinator,
  client: Client,
  nodeName: string,
  fields: object = {},
) {
  const token = await joined(coordinator, client, nodeName);
  const session = openSession(client, token);
  session.send(helloMessage(fields));
  await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
  return { token, ...session };
}
