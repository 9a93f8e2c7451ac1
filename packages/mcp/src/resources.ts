/** Resources: pages that a user can attach to a conversation. */
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import type { MusterApi } from '@muster/common/wire/client';
import { conditionsOf } from './tools/nodes.ts';

/** Workloads and nodes that are offered by name; others are found by their address. */
const listedMax = 30;
/** Of a page: it is attached whole. */
const pageLengthMax = 32 * 1024;

/** Adds the resources to a server. @param readable what a failure is told as */
export function addResources(
  server: McpServer,
  api: MusterApi,
  readable: <T>(read: () => Promise<T>) => Promise<T>,
): void {
  server.registerResource(
    'workload-status',
    new ResourceTemplate('muster://workloads/{workloadId}/status', {
      list: () =>
        readable(async () => {
          const { jobs } = await api.listJobs({ limit: listedMax, brief: true });
          return {
            resources: jobs.map(({ id, name, state }) => ({
              uri: `muster://workloads/${id}/status`,
              name: `${name} (${state})`,
              mimeType: 'text/markdown',
            })),
          };
        }),
    }),
    {
      title: 'Status of a workload',
      description: 'Progress, losses, checkpoints and problems of a training, as a page.',
      mimeType: 'text/markdown',
    },
    (uri, { workloadId }) =>
      readable(async () => {
        const text = await api.getTrainingStatus(String(workloadId));
        return {
          contents: [{ uri: uri.href, mimeType: 'text/markdown', text: text.slice(0, pageLengthMax) }],
        };
      }),
  );
  server.registerResource(
    'node-conditions',
    new ResourceTemplate('muster://nodes/{node}/conditions', {
      list: () =>
        readable(async () => {
          const nodes = await api.listNodes();
          return {
            resources: nodes.slice(0, listedMax).map(({ name, state }) => ({
              uri: `muster://nodes/${name}/conditions`,
              name: `${name} (${state})`,
              mimeType: 'application/json',
            })),
          };
        }),
    }),
    {
      title: 'Conditions of a node',
      description: 'What is wrong with a node and its GPUs, with the evidence, and what ends it.',
      mimeType: 'application/json',
    },
    (uri, { node }) =>
      readable(async () => {
        const text = JSON.stringify(conditionsOf(await api.getNode(String(node))), null, 1);
        return { contents: [{ uri: uri.href, mimeType: 'application/json', text }] };
      }),
  );
}
