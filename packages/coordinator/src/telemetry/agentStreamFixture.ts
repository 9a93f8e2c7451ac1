/** Nodes that are there when the coordinator starts, and the telemetry streams of their agents. */
import type { ServiceError } from '@grpc/grpc-js';
import type { TelemetryRequest__Output } from '@muster/common/gen/muster/v1/TelemetryRequest';
import type { TelemetryUpload } from '@muster/common/gen/muster/v1/TelemetryUpload';
import { agentHubService } from '@muster/common/wire/service';
import { hashToken } from '../auth/tokens.ts';
import { addCredential, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aNode } from '../modelFixture.ts';
import type { Memory } from '../store/memory/memoryStore.ts';

export const tokenOf = (node: string) => `muster_agent_${node}`;

/** A node that has joined an earlier coordinator. */
export function storeNode(memory: Memory, name: string): void {
  memory.nodes.set(name, aNode(name));
  const secretHash = hashToken(tokenOf(name));
  addCredential(memory, { id: `agent:${name}`, kind: 'agent', subject: name, secretHash });
}

export interface AgentStream {
  /** Ids of the pages that it was asked for. */
  readonly asked: readonly number[];
  readonly errors: readonly ServiceError[];
  send(upload: TelemetryUpload): void;
  cancel(): void;
}

/** @param page answers every request with what it returns; default: the test answers, or nothing does */
export function openAgentStream(
  coordinator: TestCoordinator,
  node: string,
  page?: () => string,
): AgentStream {
  const { path, requestSerialize, responseDeserialize } = agentHubService.UploadTelemetry;
  const call = coordinator
    .client()
    .makeBidiStreamRequest(path, requestSerialize, responseDeserialize, withToken(tokenOf(node)));
  const asked: number[] = [];
  const errors: ServiceError[] = [];
  call.on('data', ({ pageId }: TelemetryRequest__Output) => {
    asked.push(pageId);
    if (page !== undefined) call.write({ page: { pageId, text: page() } });
  });
  call.on('error', (error: ServiceError) => errors.push(error));
  return {
    asked,
    errors,
    send: (upload) => void call.write(upload),
    cancel: () => call.cancel(),
  };
}
