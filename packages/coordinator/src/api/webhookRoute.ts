/** Deliveries to triggers by webhook: no token, but a signature, which the handler verifies. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { DeliverWebhook } from '../rpc/webhookDeliveries.ts';
import { apiPrefix, webhookPath } from './routes.ts';

export interface WebhookRouteParts {
  readonly deliver: DeliverWebhook;
  readonly peerOf: (request: FastifyRequest) => string | null;
  /** A delivery on this connection was signed, which counts as a valid token. */
  readonly onSigned: (request: FastifyRequest) => void;
}

export function addWebhookRoute(
  app: FastifyInstance,
  { deliver, peerOf, onSigned }: WebhookRouteParts,
): void {
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
      onSigned(request);
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer));
    },
  );
}
