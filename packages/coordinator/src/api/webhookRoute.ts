/** Deliveries to triggers by webhook: no token, but a signature, which the handler verifies. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { DeliverWebhook } from '../rpc/webhookDeliveries.ts';
import { apiPrefix, webhookPath } from './routes.ts';

export interface WebhookRouteParts {
  readonly deliver: DeliverWebhook;
  readonly peerOf: (request: FastifyRequest) => string | null;
}

export function addWebhookRoute(app: FastifyInstance, { deliver, peerOf }: WebhookRouteParts): void {
  app.post<{ Params: { name: string } }>(
    `${apiPrefix}${webhookPath.replace('{name}', ':name')}`,
    async (request, reply) => {
      const header = (name: string) => {
        const value = request.headers[name];
        return typeof value === 'string' ? value : null;
      };
      const answer = await deliver({
        trigger: request.params.name,
        id: header('webhook-id'),
        timestamp: header('webhook-timestamp'),
        signature: header('webhook-signature'),
        body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
        peer: peerOf(request),
      });
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer));
    },
  );
}
