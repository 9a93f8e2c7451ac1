/** Server reflection, so that grpcurl and the like need no proto files. */
import type { Server } from '@grpc/grpc-js';
import { fromJSON, type PackageDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { descriptorJson } from '@muster/common/gen/descriptor';
import type { INamespace } from 'protobufjs';

/** The same for every server of a process. null: no server has asked for it yet. */
let service: ReflectionService | null = null;

export function addReflection(server: Server): void {
  service ??= reflectionService();
  service.addToServer(server);
}

function reflectionService(): ReflectionService {
  const definition = fromJSON(JSON.parse(descriptorJson) as INamespace);
  return new ReflectionService(withEachFileOnce(definition), {
    services: ['muster.v1.Muster', 'muster.v1.AgentHub'],
  });
}

/**
 * proto-loader gives every message the descriptors of all files, and the service decodes them once for each message: with 236
 * messages that was 160 to 230 ms of each start. The descriptors of the files are all that it reads of a definition.
 */
function withEachFileOnce(definition: PackageDefinition): PackageDefinition {
  const files = new Set<unknown>();
  return Object.fromEntries(
    Object.entries(definition).filter(([, type]) => {
      if (!('fileDescriptorProtos' in type) || files.has(type.fileDescriptorProtos)) return false;
      files.add(type.fileDescriptorProtos);
      return true;
    }),
  );
}
