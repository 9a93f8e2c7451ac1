/** Who may call what. What is not listed is refused. */
import type { Identity } from '../caller.ts';

type Role = Identity['kind'];

const admin: readonly Role[] = ['admin'];
const agent: readonly Role[] = ['agent'];
const anyone: readonly Role[] = ['admin', 'agent'];

const rolesByPath: ReadonlyMap<string, readonly Role[]> = new Map(
  Object.entries({
    '/muster.v1.Muster/Submit': admin,
    '/muster.v1.Muster/GetJob': admin,
    '/muster.v1.Muster/ResolveJob': admin,
    '/muster.v1.Muster/ListJobs': admin,
    '/muster.v1.Muster/StopJobs': admin,
    '/muster.v1.Muster/RequeueJob': admin,
    '/muster.v1.Muster/ExplainJob': admin,
    '/muster.v1.Muster/ReadLogs': admin,
    '/muster.v1.Muster/WatchEvents': admin,
    '/muster.v1.Muster/ListNodes': admin,
    '/muster.v1.Muster/GetNode': admin,
    '/muster.v1.Muster/CreateJoinToken': admin,
    '/muster.v1.Muster/ListCredentials': admin,
    '/muster.v1.Muster/RevokeCredential': admin,
    '/muster.v1.Muster/RotateAdminToken': admin,
    '/muster.v1.Muster/RemoveNode': admin,
    '/muster.v1.Muster/GetCluster': admin,
    '/muster.v1.Muster/QueryMetrics': admin,
    '/muster.v1.Muster/SummarizeTraining': admin,
    '/muster.v1.Muster/ListTelemetry': admin,
    '/muster.v1.Muster/ClearCondition': admin,
    '/muster.v1.Muster/ConfirmDead': admin,
    '/muster.v1.Muster/SetMaintenance': admin,
    '/muster.v1.Muster/AdvanceStore': admin,
    '/muster.v1.Muster/BackupStore': admin,
    '/muster.v1.Muster/DrainNode': admin,
    '/muster.v1.Muster/EndOrphans': admin,
    '/muster.v1.Muster/UndrainNode': admin,
    '/muster.v1.Muster/ExtendJob': admin,
    '/muster.v1.Muster/RemoveLogs': admin,
    '/muster.v1.Muster/GetTrainingStatus': admin,
    '/muster.v1.AgentHub/Join': ['join'],
    '/muster.v1.AgentHub/Session': agent,
    '/muster.v1.AgentHub/UploadLogs': agent,
    '/muster.v1.AgentHub/UploadTelemetry': agent,
    '/muster.v1.AgentHub/UploadRows': agent,
    '/grpc.health.v1.Health/Check': anyone,
    '/grpc.health.v1.Health/Watch': anyone,
    '/grpc.health.v1.Health/List': anyone,
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo': anyone,
    '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo': anyone,
  }),
);

export function mayCall({ kind }: Pick<Identity, 'kind'>, path: string): boolean {
  return rolesByPath.get(path)?.includes(kind) ?? false;
}

/** Every method that anyone may call; a test compares it with what the server serves. */
export function listedPaths(): readonly string[] {
  return [...rolesByPath.keys()];
}
