/** Server reflection, so that grpcurl and the like need no proto files. */
import type { Server } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { descriptorJson } from '@muster/common/gen/descriptor';
import type { INamespace } from 'protobufjs';

export function addReflection(server: Server): void {
  const definition = fromJSON(JSON.parse(descriptorJson) as INamespace);
  new ReflectionService(definition, { services: ['muster.v1.Muster', 'muster.v1.AgentHub'] }).addToServer(
    server,
  );
}
