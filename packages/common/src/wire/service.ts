/**
 * gRPC service definitions from the generated JSON descriptor.
 *
 * proto-loader would build the same from .proto files, but it also builds descriptors for reflection, which doubles the
 * start-up time of every `muster` call. Only the coordinator, which serves reflection, pays for that.
 */
import type { ServiceDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs/light.js';
import { descriptorJson } from '../gen/descriptor.ts';
import type { AgentHubDefinition } from '../gen/muster/v1/AgentHub.ts';
import type { MusterDefinition } from '../gen/muster/v1/Muster.ts';

/** As the options of scripts/generate-proto.mjs say, which the generated types follow. */
const conversion: protobuf.IConversionOptions = {
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
};

const root = protobuf.Root.fromJSON(JSON.parse(descriptorJson) as protobuf.INamespace);

function defineService(serviceName: string): ServiceDefinition {
  const service = root.lookupService(serviceName);
  return Object.fromEntries(
    service.methodsArray.map((method) => {
      const request = root.lookupType(`muster.v1.${method.requestType}`);
      const response = root.lookupType(`muster.v1.${method.responseType}`);
      return [
        method.name,
        {
          path: `/${serviceName}/${method.name}`,
          requestStream: method.requestStream ?? false,
          responseStream: method.responseStream ?? false,
          requestSerialize: (value: object) => encodeMessage(request, value),
          requestDeserialize: (bytes: Buffer) => decodeMessage(request, bytes),
          responseSerialize: (value: object) => encodeMessage(response, value),
          responseDeserialize: (bytes: Buffer) => decodeMessage(response, bytes),
          originalName: method.name.charAt(0).toLowerCase() + method.name.slice(1),
        },
      ];
    }),
  );
}

function encodeMessage(type: protobuf.Type, value: object): Buffer {
  return Buffer.from(type.encode(type.fromObject(value)).finish());
}

function decodeMessage(type: protobuf.Type, bytes: Buffer): object {
  return messageToObject(type, type.decode(bytes));
}

/** For readers that look at the bytes of a message before they decode it. */
export type MessageType = protobuf.Type;
export type WireReader = protobuf.Reader;
export const WireReader = protobuf.Reader;

export function messageType(name: string): MessageType {
  return root.lookupType(`muster.v1.${name}`);
}

/** As handlers get it. */
export function messageToObject(type: MessageType, message: protobuf.Message): Record<string, unknown> {
  return type.toObject(message, conversion);
}

export const musterService = defineService('muster.v1.Muster') as unknown as MusterDefinition;
export const agentHubService = defineService('muster.v1.AgentHub') as unknown as AgentHubDefinition;

/** Encodes a message that travels as binary metadata, such as SpecProblems. */
export function encodeSpecProblems(value: object): Buffer {
  return encodeMessage(root.lookupType('muster.v1.SpecProblems'), value);
}

export function decodeSpecProblems(bytes: Buffer): object {
  return decodeMessage(root.lookupType('muster.v1.SpecProblems'), bytes);
}
