/**
 * Where each call of the service `Muster` is in the HTTP API. What a call takes and answers follows from its messages in proto/: a
 * field that the path names is there; of a call that only reads, and of one that deletes, the others are parameters of the query,
 * and of any other call they are members of the body. `Idempotency-Key` is the `request_id` of a call that changes something.
 *
 * A call without a row does not compile.
 */
import type { MusterCalls } from '../rpc/calls.ts';

export type CallName = keyof MusterCalls;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`. `{name}` is a field of the request; of a list, its only element. */
  readonly path: string;
  /** The member of the request that the body as a whole is; the others are parameters of the query then. */
  readonly body?: string;
  /** How a call is answered that is a stream. Default: it is none. */
  readonly stream?: 'events' | 'logs' | 'metrics' | 'bytes';
}

/** Of deliveries, which are no call of the service: their senders have no token. Below `/api/v1`. */
export const webhookPath = '/triggers/{name}/deliveries';

type Rows = Readonly<Record<CallName, readonly [Route, ...Route[]]>>;

const get = (path: string): readonly [Route] => [{ method: 'GET', path }];
const post = (path: string): readonly [Route] => [{ method: 'POST', path }];
const put = (path: string): readonly [Route] => [{ method: 'PUT', path }];
const remove = (path: string): readonly [Route] => [{ method: 'DELETE', path }];

export const routesOfCalls: Rows = {
  Submit: [{ method: 'POST', path: '/jobs', body: 'spec' }],
  ListJobs: get('/jobs'),
  GetJob: get('/jobs/{jobId}'),
  ResolveJob: get('/references/{reference}'),
  StopJobs: [
    { method: 'POST', path: '/jobs/{ids}/stop' },
    { method: 'POST', path: '/jobs/stop' },
  ],
  RequeueJob: post('/jobs/{jobId}/requeue'),
  ExtendJob: post('/jobs/{jobId}/extend'),
  ExplainJob: get('/jobs/{jobId}/explain'),
  GetTrainingStatus: get('/jobs/{jobId}/status'),
  SummarizeTraining: get('/jobs/{jobId}/metrics'),
  QueryMetrics: [
    { method: 'GET', path: '/jobs/{jobId}/metrics/{name}' },
    { method: 'GET', path: '/metrics/{name}' },
  ],
  WatchMetrics: [
    { method: 'GET', path: '/jobs/{jobId}/metrics/{name}/stream', stream: 'metrics' },
    { method: 'GET', path: '/metrics/{name}/stream', stream: 'metrics' },
  ],
  ReadLogs: [{ method: 'GET', path: '/jobs/{jobId}/logs/stream', stream: 'logs' }],
  RemoveLogs: remove('/jobs/{jobId}/logs'),

  WatchEvents: [{ method: 'GET', path: '/events/stream', stream: 'events' }],

  ListNodes: get('/nodes'),
  GetNode: get('/nodes/{name}'),
  RemoveNode: remove('/nodes/{name}'),
  DrainNode: post('/nodes/{node}/drain'),
  UndrainNode: post('/nodes/{node}/undrain'),
  ConfirmDead: post('/nodes/{node}/confirm-dead'),
  RejoinNode: post('/nodes/{node}/rejoin'),
  EndOrphans: post('/nodes/{node}/end-orphans'),
  ClearCondition: post('/nodes/{node}/conditions/{kind}/clear'),
  ListTelemetry: get('/telemetry'),

  GetCluster: get('/cluster'),
  GetUpkeep: get('/upkeep'),
  SetMaintenance: put('/cluster/maintenance'),
  AdvanceStore: post('/store/advance'),
  GetClock: get('/clock'),
  AcceptClock: post('/clock/accept'),
  BackupStore: [{ method: 'GET', path: '/store/backup', stream: 'bytes' }],

  ListProjects: get('/projects'),
  SetProject: put('/projects/{name}'),
  ListSecrets: get('/secrets'),
  SetSecret: put('/projects/{project}/secrets/{name}'),
  RemoveSecret: remove('/projects/{project}/secrets/{name}'),
  RotateSecretKey: post('/secrets/rotate-key'),

  ListAlerts: get('/alerts'),
  CreateAlert: post('/alerts'),
  DeleteAlert: remove('/alerts/{name}'),
  SilenceAlert: post('/alerts/{name}/silence'),
  AcknowledgeAlert: post('/alerts/{name}/acknowledge'),

  ListSweeps: get('/sweeps'),
  CreateSweep: [{ method: 'POST', path: '/sweeps', body: 'spec' }],
  GetSweep: get('/sweeps/{sweep}'),
  ListTrials: get('/sweeps/{sweep}/trials'),
  StopSweep: post('/sweeps/{sweep}/stop'),
  ExtendSweep: post('/sweeps/{sweep}/extend'),

  Advise: [{ method: 'POST', path: '/advice', body: 'context' }],

  ListPipelines: get('/pipelines'),
  RunPipeline: [{ method: 'POST', path: '/pipelines', body: 'spec' }],
  GetPipeline: get('/pipelines/{run}'),
  StopPipeline: post('/pipelines/{run}/stop'),
  RerunPipeline: post('/pipelines/{run}/rerun'),
  ListTriggers: get('/triggers'),
  CreateTrigger: post('/triggers'),
  GetTrigger: get('/triggers/{name}'),
  DeleteTrigger: remove('/triggers/{name}'),
  PauseTrigger: post('/triggers/{name}/pause'),
  ResumeTrigger: post('/triggers/{name}/resume'),
  RunTrigger: post('/triggers/{name}/run'),
  GetLineage: get('/lineage'),

  ListUsers: get('/users'),
  AddUser: post('/users'),
  ChangeUser: [{ method: 'PATCH', path: '/users/{name}' }],
  RemoveUser: remove('/users/{name}'),
  CreateLoginCode: post('/users/{user}/login-codes'),

  GetLoginMethod: get('/login'),
  GetCaller: get('/caller'),
  Login: post('/login'),
  LoginWithIdToken: post('/login/id-token'),
  CreateUserToken: post('/tokens'),
  RotateUserToken: post('/tokens/rotate'),
  ListCredentials: get('/credentials'),
  RevokeCredential: remove('/credentials/{name}'),
  CreateJoinToken: post('/join-tokens'),
  RotateAdminToken: post('/admin-token/rotate'),
};

export const apiPrefix = '/api/v1';
