/** The standard health service (grpc.health.v1), by the grpc project's own package. */
import type { Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

export interface Health {
  serving(): void;
  stopping(): void;
}

export function addHealth(server: Server): Health {
  const services = ['', 'muster.v1.Muster', 'muster.v1.AgentHub'];
  const health = new HealthImplementation(Object.fromEntries(services.map((name) => [name, 'NOT_SERVING'])));
  health.addToServer(server);
  const setAll = (status: 'SERVING' | 'NOT_SERVING') => {
    for (const name of services) health.setStatus(name, status);
  };
  return { serving: () => setAll('SERVING'), stopping: () => setAll('NOT_SERVING') };
}
