/** The agents' service, which reads requests within their bounds. */
import type { AgentHubDefinition } from '@muster/common/gen/muster/v1/AgentHub';
import { agentHubService } from '@muster/common/wire/service';
import { readBounded } from './bounded.ts';

const requests = {
  Join: 'JoinRequest',
  Session: 'AgentMessage',
  UploadLogs: 'LogUpload',
  UploadTelemetry: 'TelemetryUpload',
  UploadRows: 'RowUpload',
  ReadSecrets: 'ReadSecretsRequest',
} as const satisfies Record<keyof AgentHubDefinition, string>;

/** Its handlers get a `RefusedMessage` in the place of what is beyond its bounds, and have to look for that first. */
export const boundedAgentHubService = Object.fromEntries(
  Object.entries(agentHubService).map(([method, definition]) => {
    const typeName = requests[method as keyof typeof requests];
    return [method, { ...definition, requestDeserialize: (bytes: Buffer) => readBounded(typeName, bytes) }];
  }),
) as unknown as AgentHubDefinition;
