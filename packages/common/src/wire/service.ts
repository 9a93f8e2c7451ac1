/** gRPC service definitions of proto/. */
import type { ServiceDefinition } from '@grpc/grpc-js';
import type { AgentHubDefinition } from '../gen/muster/v1/AgentHub.ts';
import type { MusterDefinition } from '../gen/muster/v1/Muster.ts';
import { messageCodec, serviceMethods } from './messages.ts';

function defineService(service: string): ServiceDefinition {
  return Object.fromEntries(
    serviceMethods(service).map(
      ({ name, path, requestType, responseType, requestStream, responseStream }) => {
        const request = messageCodec(requestType);
        const response = messageCodec(responseType);
        return [
          name,
          {
            path,
            requestStream,
            responseStream,
            requestSerialize: request.encode,
            requestDeserialize: request.decode,
            responseSerialize: response.encode,
            responseDeserialize: response.decode,
            originalName: name.charAt(0).toLowerCase() + name.slice(1),
          },
        ];
      },
    ),
  );
}

export const musterService = defineService('Muster') as unknown as MusterDefinition;
export const agentHubService = defineService('AgentHub') as unknown as AgentHubDefinition;

/** Encodes a message that travels as binary metadata, such as SpecProblems. */
export function encodeSpecProblems(value: object): Buffer {
  return messageCodec('SpecProblems').encode(value);
}

export function decodeSpecProblems(bytes: Buffer): object {
  return messageCodec('SpecProblems').decode(bytes);
}
