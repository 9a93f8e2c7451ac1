/** The public API as a typed client in domain words; what the CLI, and anyone else in TypeScript, uses. */
import type { MethodDefinition } from '@grpc/proto-loader';
import type { ResumeChoice } from '../checkpoints.ts';
import type { ClusterView } from '../clusterView.ts';
import { MusterError } from '../errors.ts';
import type { BackupPiece__Output } from '../gen/muster/v1/BackupPiece.ts';
import type { BackupStoreRequest } from '../gen/muster/v1/BackupStoreRequest.ts';
import type { Event__Output } from '../gen/muster/v1/Event.ts';
import type { LogPiece__Output } from '../gen/muster/v1/LogPiece.ts';
import type { MetricUpdate__Output } from '../gen/muster/v1/MetricUpdate.ts';
import type { ReadLogsRequest } from '../gen/muster/v1/ReadLogsRequest.ts';
import type { WatchEventsRequest } from '../gen/muster/v1/WatchEventsRequest.ts';
import type { WatchMetricsRequest } from '../gen/muster/v1/WatchMetricsRequest.ts';
import type { GrpcChannel } from '../grpc/channel.ts';
import type { SecretView } from '../secrets.ts';
import { arraySizeMax } from '../spec/array.ts';
import type { JobStateKind } from '../states.ts';
import type { SubmitResult } from '../submitResult.ts';
import type { MetricsView, MetricUpdate } from '../telemetry.ts';
import type { TrainingSummary } from '../training.ts';
import type { UpkeepView } from '../upkeep.ts';
import type { CredentialView, EventView, ExplainView, JobView, LogPiece } from '../views.ts';
import { type AdviceApi, adviceClient } from './adviceClient.ts';
import { type AlertApi, alertClient } from './alertClient.ts';
import { callProblem } from './callProblem.ts';
import {
  clusterFromWire,
  credentialFromWire,
  eventFromWire,
  jobFromWire,
  jobStateWire,
  logPieceFromWire,
  metricsFromWire,
  metricUpdateFromWire,
  pendingFromWire,
  summaryFromWire,
  upkeepFromWire,
} from './codec.ts';
import type { EventsWanted } from './eventsWanted.ts';
import { type NodeApi, nodeClient } from './nodeClient.ts';
import { openChannel } from './openChannel.ts';
import { type PeopleApi, peopleClient } from './peopleClient.ts';
import { type PipelineApi, pipelineClient } from './pipelineClient.ts';
import { musterService } from './service.ts';
import { arraySizeIn } from './submitSize.ts';
import { type SweepApi, sweepClient } from './sweepClient.ts';
import type { RequestOf, ResponseOf, UnaryName } from './unaryCalls.ts';

/** For calls that answer at once; a coordinator that needs longer has a problem that the user should see. */
const callTimeoutMs = 10_000;
/** Beside that, for each job that a call submits or may stop: an array is stored, and stopped, some jobs at a time. */
const perJobTimeoutMs = 1;

export interface ConnectOptions {
  /** `host:port`. */
  readonly address: string;
  readonly token: string;
  /** PEM of the coordinator's CA; absent or null: no TLS, on loopback only. */
  readonly caCertificate?: string | null;
  /** What jobs are submitted for (W3C Trace Context); absent or null: nothing that is traced. */
  readonly traceparent?: string | null;
}

export interface JobFilter {
  readonly states?: readonly JobStateKind[];
  readonly arrayId?: string;
  readonly name?: string;
  /** 1..1000, default 100. */
  readonly limit?: number;
  readonly beforeSubmitSeq?: number;
  readonly project?: string;
  readonly user?: string;
  /** `NAME` or `NAME=VALUE`. */
  readonly label?: string;
  /** Wall clock. */
  readonly sinceMs?: number;
  readonly requestId?: string;
  /** Without what is large and no table shows, which is empty. Default: all of each job. */
  readonly brief?: boolean;
}

export interface LogRequest {
  readonly jobId: string;
  /** Default: the newest; when following, later ones too. */
  readonly attempt?: number;
  readonly nodeRank?: number;
  readonly follow?: boolean;
  readonly tailLines?: number;
  /** Where to resume, by rank; `tailLines` does not count then. */
  readonly from?: readonly LogPosition[];
}

/** How much of the output of a rank has been read. */
export interface LogPosition {
  readonly attempt: number;
  readonly nodeRank: number;
  readonly offset: number;
}

/** Of one job, of those that the others select together, or of all. */
export interface MetricsQuery {
  readonly jobId?: string;
  readonly node?: string;
  readonly user?: string;
  readonly project?: string;
  /** Of the table of `metricNames.ts`. */
  readonly name: string;
  /** `-30m`, `now`, `2026-01-02T03:04:05Z` or milliseconds since 1970. */
  readonly startTime?: string;
  readonly endTime?: string;
  /** One value for each step. */
  readonly stepMs?: number;
  /** How values become one: `mean`, `min`, `max`, `p95`, `last`, `sum`. */
  readonly aggregation?: string;
  /** What values become one together: those of a `gpu`, `rank`, `node`, `job`, or `all`. */
  readonly by?: string;
  /** Only readings that are not older than this, in milliseconds; default: all that are kept. */
  readonly sinceMs?: number;
  /** Default: every attempt. */
  readonly attempt?: number;
  /** Of metrics from the output: at most this many points of each series, by merging neighbours. Default: all, page by page. */
  readonly pointsMax?: number;
  /** Of metrics from the output: also what a later attempt did again. Default: without it. */
  readonly superseded?: boolean;
  /** The `nextSkip` of a view. */
  readonly skip?: number;
}

/** Of one job, of those that the others select together, or of all. */
export interface MetricsWatch
  extends Pick<MetricsQuery, 'jobId' | 'node' | 'user' | 'project' | 'name' | 'attempt'> {
  /** Begin with the values since then, written as in a query. Default: with those that arrive. */
  readonly startTime?: string;
  /** Of the last update; `startTime` does not count then. */
  readonly position?: string;
  /** One value for each step, once it is closed; `aggregation` and `by` need it. Default: each value. */
  readonly stepMs?: number;
  readonly aggregation?: string;
  readonly by?: string;
  /** Default: end with what there is now. */
  readonly follow?: boolean;
}

export interface TrainingQuery {
  readonly jobId: string;
  /** Only rows that are not older than this, in milliseconds; default: all. */
  readonly sinceMs?: number;
  /** Default: every attempt, without what a later one did again. */
  readonly attempt?: number;
}

export interface TrainingSummaries {
  readonly metrics: readonly TrainingSummary[];
  /** Not every row is kept any longer. */
  readonly thinned: boolean;
  /** Output that was never read for metrics. */
  readonly unreadBytes: number;
}

/** What a reference names: a job, or an array of them. */
export type JobReferent =
  | { readonly kind: 'job'; readonly id: string }
  | { readonly kind: 'array'; readonly id: string; readonly name: string; readonly size: number };

/** Every method throws MusterError. Streams end when their AbortSignal fires. */
export interface MusterApi extends NodeApi, PeopleApi, AlertApi, SweepApi, AdviceApi, PipelineApi {
  submit(request: {
    specJson: string;
    requestId: string;
    arraySize?: number;
    dryRun?: boolean;
    /** A job to continue from: its id, or the beginning of it. Excludes `resumeFromPath`. */
    resumeFromJob?: string;
    /** A checkpoint to begin from: an absolute path. */
    resumeFromPath?: string;
  }): Promise<SubmitResult>;
  getJob(jobId: string): Promise<JobView>;
  resolveJob(reference: string): Promise<JobReferent>;
  /** `notStored`: jobs of the array that was asked for that are queued, and not listed because they are still being stored. */
  listJobs(filter?: JobFilter): Promise<{ jobs: readonly JobView[]; more: boolean; notStored: number }>;
  /**
   * @param brief the views are those of a brief list
   * @returns at most 1,000 of the jobs that there were to stop, and how many there were
   */
  stopJobs(
    ids: readonly string[],
    reason?: string,
    brief?: boolean,
  ): Promise<{ readonly jobs: readonly JobView[]; readonly total: number }>;
  /**
   * @param from which checkpoint to resume from; default: the newest good one
   * @param specJson another spec, for a job that has ended; absent or null: its own
   * @param force stop its attempt, if it is starting or running; default: such a job is refused
   */
  requeueJob(
    jobId: string,
    requestId: string,
    from?: ResumeChoice,
    specJson?: string | null,
    force?: boolean,
  ): Promise<{ jobId: string; newJob: boolean }>;
  /** @param byMs more than 0, at most 365 days @param requestId repeated, it adds nothing; absent: each call adds */
  extendJob(jobId: string, byMs: number, requestId?: string): Promise<JobView>;
  /** What the training does, for people, as Markdown. */
  getTrainingStatus(jobId: string): Promise<string>;
  explainJob(jobId: string): Promise<ExplainView>;
  /** Removes the output of a job that is kept. @returns the job's id, and bytes freed */
  removeLogs(jobId: string): Promise<{ jobId: string; bytesFreed: number }>;
  readLogs(request: LogRequest, abort?: AbortSignal): AsyncIterable<LogPiece>;
  watchEvents(request: EventsWanted, abort?: AbortSignal): AsyncIterable<EventView>;
  /** @param replace the credential that the node has ends when the token is used */
  createJoinToken(nodeName: string, replace?: boolean): Promise<{ token: string; expiresAtMs: number }>;
  /** By id. */
  listCredentials(): Promise<readonly CredentialView[]>;
  /**
   * @param name an id, the beginning of one, or a node's name
   * @param force although tasks run on its node; default: that is refused
   * @returns the ids of those that ended
   */
  revokeCredential(name: string, force?: boolean): Promise<readonly string[]>;
  /** @returns another admin token: the one of this client is no longer valid */
  rotateAdminToken(): Promise<string>;
  setSecret(project: string, name: string, value: Uint8Array): Promise<SecretView>;
  /** By project and name. @param project default: every project */
  listSecrets(project?: string): Promise<readonly SecretView[]>;
  /** @returns what was removed */
  removeSecret(project: string, name: string): Promise<SecretView>;
  /** @returns how many secrets were encrypted with another key */
  rotateSecretKey(): Promise<number>;
  getCluster(): Promise<ClusterView>;
  /** What has to be looked after before it runs out. */
  getUpkeep(): Promise<UpkeepView>;
  /** @param forMs how long leases last from now on, 10 s to 24 h; 0: as usual again */
  setMaintenance(forMs: number): Promise<ClusterView>;
  /** Lets the coordinator continue from a store that was restored from an old copy. */
  advanceStore(): Promise<ClusterView>;
  /** The content of a backup, in pieces. @param options.hasKeys with the key files beside the store */
  backupStore(options: { readonly hasKeys: boolean }, abort?: AbortSignal): AsyncIterable<Buffer>;
  /** Values of one metric over time, one by one or aggregated. */
  queryMetrics(query: MetricsQuery): Promise<MetricsView>;
  /** What arrives of a metric. Ends when aborted, or at once where it does not follow. */
  watchMetrics(request: MetricsWatch, abort?: AbortSignal): AsyncIterable<MetricUpdate>;
  /** What the output of a job shows of each metric, in short. */
  summarizeTraining(query: TrainingQuery): Promise<TrainingSummaries>;
  close(): void;
}

export function connectMuster(options: ConnectOptions): MusterApi {
  const { address, token, caCertificate = null, traceparent = null } = options;
  const headers = traceparent === null ? [] : [['traceparent', traceparent] as const];
  const channel = openChannel({ address, caCertificate }, token, headers);
  return musterApiOver(channel, (error) => callProblem(error, address, caCertificate !== null));
}

/**
 * The client over whatever carries its calls.
 * @param describe what is thrown for an error of the channel
 */
export function musterApiOver(channel: GrpcChannel, describe: (error: unknown) => MusterError): MusterApi {
  async function call<K extends UnaryName>(name: K, request: RequestOf<K>, jobs = 1): Promise<ResponseOf<K>> {
    const { path, requestSerialize, responseDeserialize } = musterService[
      name
    ] as unknown as MethodDefinition<RequestOf<K>, never, never, ResponseOf<K>>;
    try {
      const answer = await channel.unary(
        path,
        requestSerialize(request),
        callTimeoutMs + jobs * perJobTimeoutMs,
      );
      return responseDeserialize(answer);
    } catch (error) {
      throw describe(error);
    }
  }

  async function* stream<Request, Wired, Out>(
    { path, requestSerialize, responseDeserialize }: MethodDefinition<Request, never, never, Wired>,
    request: Request,
    decode: (wired: Wired) => Out,
    abort: AbortSignal | undefined,
  ): AsyncGenerator<Out> {
    try {
      const messages = channel.stream(path, requestSerialize(request), abort);
      for await (const message of messages) yield decode(responseDeserialize(message));
    } catch (error) {
      throw describe(error);
    }
  }

  const readLogs = musterService.ReadLogs as unknown as MethodDefinition<
    ReadLogsRequest,
    never,
    never,
    LogPiece__Output
  >;
  const watchEvents = musterService.WatchEvents as unknown as MethodDefinition<
    WatchEventsRequest,
    never,
    never,
    Event__Output
  >;
  const watchMetrics = musterService.WatchMetrics as unknown as MethodDefinition<
    WatchMetricsRequest,
    never,
    never,
    MetricUpdate__Output
  >;
  const backupStore = musterService.BackupStore as unknown as MethodDefinition<
    BackupStoreRequest,
    never,
    never,
    BackupPiece__Output
  >;

  return {
    async submit(request) {
      const jobs = request.arraySize ?? arraySizeIn(request.specJson);
      const answer = await call('Submit', request, jobs);
      return {
        jobIds: answer.jobIds,
        arrayId: answer.arrayId ?? null,
        repeatedRequest: answer.repeatedRequest,
        wouldWait: answer.wouldWait === null ? null : pendingFromWire(answer.wouldWait),
        wouldStartOn: answer.wouldStartOn,
        waits: answer.waits === null ? null : pendingFromWire(answer.waits),
        arraySize: answer.arraySize,
        jobsAhead: answer.jobsAhead,
      };
    },
    getJob: async (jobId) => jobFromWire(await call('GetJob', { jobId })),
    async resolveJob(reference) {
      const { jobId, array } = await call('ResolveJob', { reference });
      if (array !== null) return { kind: 'array', ...array };
      if (jobId !== undefined) return { kind: 'job', id: jobId };
      throw new MusterError('internal', 'the coordinator answered with neither a job nor an array');
    },
    async listJobs(filter = {}) {
      const { states = [], ...rest } = filter;
      const answer = await call('ListJobs', { ...rest, states: states.map(jobStateWire.toWire) });
      return { jobs: answer.jobs.map(jobFromWire), more: answer.more, notStored: answer.notStored };
    },
    async stopJobs(ids, reason = '', brief = false) {
      const { jobs, total } = await call('StopJobs', { ids: [...ids], reason, brief }, arraySizeMax);
      return { jobs: jobs.map(jobFromWire), total };
    },
    requeueJob: (jobId, requestId, from = { kind: 'newest' }, specJson = null, force = false) =>
      call('RequeueJob', {
        jobId,
        requestId,
        ...(from.kind === 'step' ? { fromStep: from.step } : {}),
        ...(from.kind === 'name' ? { fromName: from.name } : {}),
        fromStart: from.kind === 'start',
        ...(specJson === null ? {} : { specJson }),
        force,
      }),
    removeLogs: (jobId) => call('RemoveLogs', { jobId }),
    extendJob: async (jobId, byMs, requestId) =>
      jobFromWire(
        await call('ExtendJob', { jobId, byMs, ...(requestId === undefined ? {} : { requestId }) }),
      ),
    getTrainingStatus: async (jobId) => (await call('GetTrainingStatus', { jobId })).markdown,
    async explainJob(jobId) {
      const answer = await call('ExplainJob', { jobId });
      if (answer.job === null) throw new MusterError('internal', 'the coordinator answered without the job');
      return { ...answer, job: jobFromWire(answer.job) };
    },
    readLogs: ({ from = [], ...request }, abort) =>
      stream(readLogs, { ...request, from: [...from] }, logPieceFromWire, abort),
    watchEvents: (request, abort) => stream(watchEvents, request, eventFromWire, abort),
    ...nodeClient(call),
    createJoinToken: (nodeName, replace = false) => call('CreateJoinToken', { nodeName, replace }),
    listCredentials: async () => (await call('ListCredentials', {})).credentials.map(credentialFromWire),
    revokeCredential: async (name, force = false) => (await call('RevokeCredential', { name, force })).ids,
    rotateAdminToken: async () => (await call('RotateAdminToken', {})).token,
    ...peopleClient(call),
    ...alertClient(call),
    ...sweepClient(call),
    ...adviceClient(call),
    ...pipelineClient(call),
    setSecret: (project, name, value) => call('SetSecret', { project, name, value }),
    listSecrets: async (project) =>
      (await call('ListSecrets', project === undefined ? {} : { project })).secrets,
    removeSecret: (project, name) => call('RemoveSecret', { project, name }),
    rotateSecretKey: async () => (await call('RotateSecretKey', {})).secrets,
    getUpkeep: async () => upkeepFromWire(await call('GetUpkeep', {})),
    getCluster: async () => clusterFromWire(await call('GetCluster', {})),
    setMaintenance: async (forMs) => clusterFromWire(await call('SetMaintenance', { forMs })),
    backupStore: ({ hasKeys }, abort) => stream(backupStore, { hasKeys }, ({ data }) => data, abort),
    advanceStore: async () => clusterFromWire(await call('AdvanceStore', {})),
    queryMetrics: async (query) => metricsFromWire(await call('QueryMetrics', query)),
    watchMetrics: (request, abort) => stream(watchMetrics, request, metricUpdateFromWire, abort),
    summarizeTraining: async (query) => {
      const { metrics, thinned, unreadBytes } = await call('SummarizeTraining', query);
      return { metrics: metrics.flatMap((each) => summaryFromWire(each) ?? []), thinned, unreadBytes };
    },
    close: () => channel.close(),
  };
}
