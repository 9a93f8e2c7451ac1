/**
 * Who may call what. A call of the public API is the administrator's, and one of the agents' service is an agent's, unless it is
 * listed here. A path that belongs to no service is refused.
 */
import { agentHubService, musterService } from '@muster/common/wire/service';
import type { Identity } from '../caller.ts';

type Role = Identity['kind'];

const anyone: readonly Role[] = ['admin', 'agent'];

function allowed(
  service: Readonly<Record<string, { readonly path: string }>>,
  ...roles: readonly Role[]
): readonly (readonly [string, readonly Role[]])[] {
  return Object.values(service).map(({ path }) => [path, roles]);
}

const rolesByPath: ReadonlyMap<string, readonly Role[]> = new Map([
  ...allowed({ ...musterService }, 'admin'),
  ...allowed({ ...agentHubService }, 'agent'),
  ...Object.entries<readonly Role[]>({
    '/muster.v1.AgentHub/Join': ['join'],
    '/grpc.health.v1.Health/Check': anyone,
    '/grpc.health.v1.Health/Watch': anyone,
    '/grpc.health.v1.Health/List': anyone,
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo': anyone,
    '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo': anyone,
  }),
]);

export function mayCall({ kind }: Pick<Identity, 'kind'>, path: string): boolean {
  return rolesByPath.get(path)?.includes(kind) ?? false;
}

/** Every method that anyone may call; a test compares it with what the server serves. */
export function listedPaths(): readonly string[] {
  return [...rolesByPath.keys()];
}
