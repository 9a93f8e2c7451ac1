/**
 * Who may call what. Every call of the public API has a row: what it does, which a role or a token allows or does not (`verbsOf`).
 * Calls of the agents' service are for agents. A path that belongs to no service is refused.
 *
 * Which jobs a call may concern depends on more than its path: `access.ts` decides that for every reference to a job, by what the row
 * of the call says that it does.
 */
import type { Verb } from '@muster/common/people';
import { agentHubService, musterService } from '@muster/common/wire/service';
import type { Identity, UserIdentity } from '../caller.ts';

/** `standing`: whoever may do anything at all. `login`: only with a login code, which is of no other use. `anyone`: nothing that is shown counts. */
type Rule = Verb | 'login' | 'standing' | 'anyone';

const ruleOfCall: Readonly<Record<string, Rule>> = {
  GetJob: 'read',
  ResolveJob: 'read',
  ListJobs: 'read',
  ExplainJob: 'read',
  ReadLogs: 'read',
  WatchEvents: 'read',
  GetTrainingStatus: 'read',
  QueryMetrics: 'read',
  WatchMetrics: 'read',
  SummarizeTraining: 'read',
  ListTelemetry: 'read',
  ListNodes: 'read',
  GetNode: 'read',
  GetCluster: 'read',
  GetUpkeep: 'read',
  GetClock: 'read',
  ListProjects: 'read',
  ListAlerts: 'read',
  ListSweeps: 'read',
  GetSweep: 'read',
  ListTrials: 'read',
  Advise: 'read',
  ListPipelines: 'read',
  GetPipeline: 'read',
  GetLineage: 'read',
  ListTriggers: 'read',
  GetTrigger: 'read',

  Submit: 'submit',
  CreateSweep: 'submit',
  RunPipeline: 'submit',
  RerunPipeline: 'submit',
  CreateTrigger: 'submit',
  RunTrigger: 'submit',
  SetSecret: 'submit',
  ListSecrets: 'submit',
  RemoveSecret: 'submit',

  StopJobs: 'change',
  RequeueJob: 'change',
  ExtendJob: 'change',
  RemoveLogs: 'change',
  CreateAlert: 'change',
  DeleteAlert: 'change',
  SilenceAlert: 'change',
  AcknowledgeAlert: 'change',
  StopSweep: 'change',
  ExtendSweep: 'change',
  StopPipeline: 'change',
  DeleteTrigger: 'change',
  PauseTrigger: 'change',
  ResumeTrigger: 'change',

  // Of the caller's own tokens; for those of others the handlers want an admin.
  ListCredentials: 'tokens',
  RevokeCredential: 'tokens',
  CreateUserToken: 'tokens',
  RotateUserToken: 'tokens',

  ClearCondition: 'operate',
  ConfirmDead: 'operate',
  DrainNode: 'operate',
  UndrainNode: 'operate',
  EndOrphans: 'operate',
  SetMaintenance: 'operate',

  RejoinNode: 'administer',
  AddUser: 'administer',
  ChangeUser: 'administer',
  RemoveUser: 'administer',
  ListUsers: 'administer',
  CreateLoginCode: 'administer',
  SetProject: 'administer',
  CreateJoinToken: 'administer',
  RemoveNode: 'administer',
  RotateAdminToken: 'administer',
  AdvanceStore: 'administer',
  AcceptClock: 'administer',
  BackupStore: 'administer',
  RotateSecretKey: 'administer',

  GetCaller: 'standing',

  Login: 'login',

  GetLoginMethod: 'anyone',
  LoginWithIdToken: 'anyone',
};

type Allows = (identity: Identity) => boolean;

function toPeople(rule: Rule): Allows {
  if (rule === 'anyone') return () => true;
  if (rule === 'standing') return standingPerson;
  if (rule === 'login') return ({ kind }) => kind === 'login';
  return (identity) =>
    identity.kind === 'admin' || (identity.kind === 'user' && identity.verbs.includes(rule));
}

const standingPerson: Allows = (identity) =>
  identity.kind === 'admin' || (identity.kind === 'user' && identity.verbs.length > 0);

const standing: Allows = (identity) =>
  identity.kind === 'admin' ||
  identity.kind === 'agent' ||
  (identity.kind === 'user' && identity.verbs.length > 0);

const allowed: ReadonlyMap<string, Allows> = new Map<string, Allows>([
  ...Object.entries({ ...musterService }).flatMap(([name, { path }]): [string, Allows][] => {
    const rule = ruleOfCall[name];
    return rule === undefined ? [] : [[path, toPeople(rule)]];
  }),
  ...Object.values({ ...agentHubService }).map(({ path }): [string, Allows] => [
    path,
    ({ kind }) => kind === 'agent',
  ]),
  ...Object.entries<Allows>({
    '/muster.v1.AgentHub/Join': ({ kind }) => kind === 'join',
    '/grpc.health.v1.Health/Check': standing,
    '/grpc.health.v1.Health/Watch': standing,
    '/grpc.health.v1.Health/List': standing,
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo': standing,
    '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo': standing,
  }),
]);

export function mayCall(identity: Identity, path: string): boolean {
  return allowed.get(path)?.(identity) ?? false;
}

/** Every method that anyone may call; a test compares it with what the server serves. */
export function listedPaths(): readonly string[] {
  return [...allowed.keys()];
}

const changing = pathsOfRule('change');
const forAnyone = pathsOfRule('anyone');

function pathsOfRule(rule: Rule): ReadonlySet<string> {
  return new Set(
    Object.entries({ ...musterService }).flatMap(([name, { path }]) =>
      ruleOfCall[name] === rule ? [path] : [],
    ),
  );
}

/** Whether a call is answered without looking at what the caller shows. */
export function isForAnyone(path: string): boolean {
  return forAnyone.has(path);
}

/** What a call does with the jobs that it names. */
export function jobUseOf(path: string): UserIdentity['use'] {
  return changing.has(path) ? 'change' : 'read';
}
