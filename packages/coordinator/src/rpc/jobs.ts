/** The API's calls about jobs: decode, call, encode. */

import { MusterError } from '@muster/common/errors';
import type { ListJobsRequest__Output } from '@muster/common/gen/muster/v1/ListJobsRequest';
import { type ArrayId, isArrayId, type JobId, type RandomBytes } from '@muster/common/ids';
import { isTerminal, type JobStateKind } from '@muster/common/states';
import type { JobView, PendingReason } from '@muster/common/views';
import { jobStateWire, jobToWire, pendingToWire } from '@muster/common/wire/codec';
import type { AgentRegistry } from '../agents/registry.ts';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { requireProject } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import { jobsPerTurn } from '../commands/arrays.ts';
import {
  continuationAt,
  continuationOf,
  EndedMeanwhile,
  type InheritedCheckpoints,
} from '../commands/inheritedCheckpoints.ts';
import { extendJob, extendJobOnce, requeueJob, submit } from '../commands/jobs.ts';
import type { DiskReserve } from '../diskReserve.ts';
import { explain } from '../explain/explain.ts';
import type { SilentNode } from '../explain/silence.ts';
import { checkJobLease } from '../leases/leases.ts';
import { resumeCandidates } from '../lifecycle/resume.ts';
import type { LogStore } from '../logs/logStore.ts';
import { outputAtMs, outputLosses } from '../logs/segments.ts';
import type { Command, Loop } from '../loop.ts';
import { type Attempt, currentAttempt, isReleased, type Job } from '../model.ts';
import { requirePhaseConditions } from '../phases/phaseConditions.ts';
import type { ArrayFiller } from '../reconcilers/arrayFiller.ts';
import type { LeaseKeeper } from '../reconcilers/leaseKeeper.ts';
import type { TimeLimits } from '../reconcilers/timeLimits.ts';
import { jobsAhead } from '../scheduler/order.ts';
import type { SchedulerNode } from '../scheduler/view.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { dependenciesOf } from '../state/dependencies.ts';
import { withEvaluations } from '../state/keptCheckpoints.ts';
import type { ClusterState, Draft } from '../state/state.ts';
import { learnDependencies } from '../store/dependencyMemory.ts';
import type { JobFilters, JobRecord, RequestRecord, Store } from '../store/store.ts';
import { briefJobView, type InventoryOf, jobView } from '../views.ts';
import { nextRound } from '../work/inOrder.ts';
import { firstOfArray, idsOfSubmit, notStoredOf } from './arrayAnswers.ts';
import { type MusterCalls, unary } from './calls.ts';
import { dryRunAnswer, type PendingParts, pendingNow } from './holders.ts';
import {
  continuedFrom,
  decodeSpec,
  intentDigest,
  resumeChoiceOf,
  sizeOf,
  withDigest,
} from './jobRequests.ts';
import {
  earlierWithCheckpoint,
  resolveActiveJobs,
  resolveAfter,
  resolveArrayId,
  resolveJobId,
  resolveReference,
} from './references.ts';
import { Requests } from './requests.ts';
import { isVisibleTo, visibleTo } from './visibleJobs.ts';

const listLimitMax = 1_000;
const listLimitUsual = 100;
/** Characters of stored jobs in one page: some tens of milliseconds of work, and far below what a client takes. */
const pageSizeMax = 1024 * 1024;
const stopIdsMax = 1_000;
/** Read one by one between two rounds of the event loop. */
const jobsPerRead = 100;
/** It is stored with every job that it stops, of which one call may name a hundred thousand. */
const reasonLengthMax = 1_000;
const extendMsMax = 365 * 86_400_000;

export interface JobCallParts {
  readonly phases: PendingParts['phases'];
  readonly state: ClusterState;
  readonly store: Store;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  /** What agents say of tasks now. */
  readonly taskStatus: TaskStatusCache;
  readonly leases: LeaseKeeper;
  readonly logs: Pick<LogStore, 'directoryOf'>;
  readonly reserve: Pick<DiskReserve, 'requireSpace'>;
  readonly vault: Pick<SecretVault, 'require'>;
  readonly arrays: ArrayFiller;
  readonly random: RandomBytes;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  /** Nodes as the scheduler sees them now. */
  readonly nodeViews: () => readonly SchedulerNode[];
  readonly timeLimits: Pick<TimeLimits, 'runningMs'>;
  /** `training_status.md` of a job as it is now. */
  readonly statusOf: (record: JobRecord) => string;
  /** USD; null: unknown. */
  readonly costOf: (attempts: readonly Attempt[]) => number | null;
}

type JobCalls = Pick<
  MusterCalls,
  | 'Submit'
  | 'GetJob'
  | 'ResolveJob'
  | 'ListJobs'
  | 'StopJobs'
  | 'RequeueJob'
  | 'ExtendJob'
  | 'ExplainJob'
  | 'GetTrainingStatus'
>;

export function jobCalls(parts: JobCallParts): JobCalls {
  const { state, store, loop, taskStatus } = parts;
  const { runningMs } = parts.timeLimits;
  const requests = new Requests(store);

  const namedTo = (caller: Identity) => (job: Job) => isVisibleTo(state, caller, job);

  function view({ job, attempts }: JobRecord, inventoryOf?: InventoryOf): JobView {
    const shown = jobView(job, attempts, pendingNow(parts, job), taskStatus, parts.wallMs(), inventoryOf);
    const checkpoints = withEvaluations(job, state.evaluations.byJob.get(job.id));
    return { ...shown, checkpoints, costUsd: parts.costOf(attempts) };
  }

  /** What only one job at a time is asked for: numbers of GPUs, and a look at its files. */
  async function detailed(record: JobRecord, caller: Identity): Promise<JobView> {
    const { id, lastAttempt } = record.job;
    const shown = view(record, (node) => state.nodes.get(node)?.inventory ?? null);
    if (isTerminal(shown.state)) return shown;
    const pending =
      shown.pending && (pendingNow(parts, record.job, 'withHolders', namedTo(caller)) ?? shown.pending);
    return { ...shown, pending, outputAtMs: await outputAtMs(parts.logs.directoryOf(id), lastAttempt) };
  }

  /** A job of a list. The checkpoints of each job would be most of the answer. */
  function listed(record: JobRecord, isBrief: boolean): JobView {
    const { job, attempts } = record;
    if (isBrief) return briefJobView(job, attempts, pendingNow(parts, job), taskStatus);
    const shown = view(record);
    // Without its earlier attempts, a cost would be too low.
    return { ...shown, checkpoints: shown.checkpoints.slice(-1), costUsd: null };
  }

  /** Of a job that was planned in the turn that stored it. null: it does not wait, or nobody knows why. */
  function reasonNow(id: string | undefined, caller: Identity): PendingReason | null {
    const job = id === undefined ? undefined : state.jobs.get(id as JobId);
    if (job?.state.kind !== 'queued') return null;
    return pendingNow(parts, job, 'withHolders', namedTo(caller)) ?? null;
  }

  async function read(text: string, caller: Identity): Promise<JobRecord> {
    const id = await resolveJobId(parts, text, caller);
    const record = await store.readJob(id);
    if (record === null) throw new MusterError('not_found', `there is no job ${text}`);
    return record;
  }

  /** A known id costs no look-up: a client that waits for an array asks for its jobs all the time. */
  async function arrayIdOf(text: string, caller: Identity): Promise<ArrayId> {
    return isArrayId(text) ? text : resolveArrayId(parts, text, caller);
  }

  /** Does what needs to know what a job has saved: again, where the job has ended between the look at it and the command. */
  async function withNewest<T>(text: string, caller: Identity, work: (job: Job) => Promise<T>): Promise<T> {
    for (;;) {
      const { job } = await read(text, caller);
      try {
        return await work(job);
      } catch (error) {
        if (!(error instanceof EndedMeanwhile)) throw error;
      }
    }
  }

  /** A new job takes space; what ends one must be stored on the last of it. */
  function requireSpace(): void {
    parts.reserve.requireSpace(parts.monotonicMs());
  }

  return {
    Submit: unary(async (request, caller) => {
      const spec = decodeSpec(request.specJson, request.arraySize);
      requireProject(caller, spec.project);
      checkJobLease(spec.leaseMs, parts.agents.heartbeatIntervalMs);
      await parts.vault.require(spec);
      await requirePhaseConditions(spec);
      const continued = continuedFrom(request, spec);
      const command = withDigest(
        { spec, requestId: request.dryRun ? '' : request.requestId, requeuedFrom: null, place: null },
        { kind: 'newest' },
        continued,
      );
      /** @param run carries the command out, or only rehearses it */
      const carryOut = async <T>(run: (submitting: Command<RequestRecord>) => T | Promise<T>): Promise<T> => {
        const resolved = { ...command, runningMs, spec: await resolveAfter(parts, spec, caller) };
        await learnDependencies(state, store, dependenciesOf(resolved));
        const submitted = async (inheritedIn: (draft: Draft) => InheritedCheckpoints | null) =>
          run((draft, nowMs) => submit(draft, resolved, parts.random, nowMs, inheritedIn(draft)));
        if (continued === null) return submitted(() => null);
        if (continued.startsWith('/')) return submitted(() => continuationAt(continued));
        return withNewest(continued, caller, async (job) => {
          const earlier = await earlierWithCheckpoint(parts, job, caller);
          return submitted((draft) => continuationOf(draft, job, spec, earlier));
        });
      };
      if (request.dryRun)
        return dryRunAnswer(
          parts,
          await carryOut((submitting) => loop.rehearse(caller, submitting)),
          namedTo(caller),
        );
      const { record, repeated } = await requests.once(command, () => {
        requireSpace();
        return carryOut((submitting) => loop.run(caller, submitting));
      });
      const { arrayId } = record;
      const jobIds = await idsOfSubmit(parts, record, spec);
      const waits = reasonNow(jobIds[0] ?? (await firstOfArray(parts, arrayId, spec)), caller);
      return {
        jobIds: [...jobIds],
        ...(arrayId === null ? {} : { arrayId }),
        repeatedRequest: repeated,
        arraySize: sizeOf(spec),
        waits: waits && pendingToWire(waits),
      };
    }),

    GetJob: unary(async (request, caller) =>
      jobToWire(await detailed(await read(request.jobId, caller), caller)),
    ),

    ResolveJob: unary(async ({ reference }, caller) => {
      const referent = await resolveReference(parts, reference, caller);
      return referent.kind === 'job' ? { jobId: referent.id } : { array: referent };
    }),

    ListJobs: unary(async (request, caller) => {
      const accepted = request.requestId === undefined ? null : await requests.accepted(request.requestId);
      if (accepted?.arrayId === null) {
        const [jobId] = accepted.jobIds;
        const record = jobId === undefined ? null : await store.readJob(jobId);
        const isShown = record !== null && isVisibleTo(state, caller, record.job);
        return { jobs: isShown ? [jobToWire(listed(record, request.brief))] : [], more: false };
      }
      const named = request.arrayId === undefined ? null : await arrayIdOf(request.arrayId, caller);
      const arrayId = (accepted?.arrayId as ArrayId | undefined) ?? named;
      // Before the list: a job that is stored in between is counted twice rather than not at all.
      const notStored = notStoredOf(parts, arrayId);
      const { records, more } = await store.listJobs({
        states: request.states.map(knownState),
        arrayId,
        name: request.name ?? null,
        limit: Math.min(request.limit ?? listLimitUsual, listLimitMax),
        sizeMax: pageSizeMax,
        beforeSubmitSeq: request.beforeSubmitSeq ?? null,
        also: { ...filtersOf(request), visible: visibleTo(state, caller) },
      });
      return { jobs: records.map((record) => jobToWire(listed(record, request.brief))), more, notStored };
    }),

    StopJobs: unary(async (request, caller) => {
      if (request.ids.length > stopIdsMax) {
        throw new MusterError('invalid', `${request.ids.length} ids; at most ${stopIdsMax} in one call`);
      }
      if (request.reason.length > reasonLengthMax) {
        throw new MusterError(
          'invalid',
          `the reason has ${request.reason.length} characters; at most ${reasonLengthMax}`,
        );
      }
      const named = await Promise.all(request.ids.map((text) => resolveActiveJobs(parts, text, caller)));
      const ids = [...new Set(named.flat())];
      // The newest first: what stops makes room for nothing that is about to stop as well.
      const slices = inSlices(ids.toReversed(), jobsPerTurn);
      const event = { kind: 'stop', reason: request.reason } as const;
      for (const slice of slices) {
        await loop.run(caller, (draft, nowMs) => {
          for (const id of slice) applyJobEvent(draft, id, event, nowMs);
        });
      }
      const jobs: ReturnType<typeof jobToWire>[] = [];
      for (const slice of inSlices(ids.slice(0, stopIdsMax), jobsPerRead)) {
        const records = await Promise.all(slice.map((id) => store.readJob(id)));
        jobs.push(
          ...records.flatMap((record) => (record === null ? [] : [jobToWire(listed(record, request.brief))])),
        );
        await nextRound();
      }
      return { jobs, total: ids.length };
    }),

    RequeueJob: unary(async (request, caller) => {
      const { job } = await read(request.jobId, caller);
      const { id, array } = job;
      const isEdited = request.specJson !== undefined;
      const spec = request.specJson === undefined ? job.spec : decodeSpec(request.specJson);
      if (isEdited && spec.array !== null)
        throw new MusterError('invalid', 'array: a requeued job is one job; submit an array instead');
      requireProject(caller, spec.project);
      if (isEdited) checkJobLease(spec.leaseMs, parts.agents.heartbeatIntervalMs);
      if (isEdited) await requirePhaseConditions(spec);
      const { requestId } = request;
      const from = resumeChoiceOf(request);
      // The same while it runs and when it has ended: the second call for one requeue may find another state.
      const command = {
        ...withDigest({ spec, requestId, requeuedFrom: id, place: array }, from),
        from,
        isEdited,
        force: request.force,
      };
      const { record } = await requests.once(command, async () => {
        if (!state.jobs.has(id)) requireSpace();
        const resolved = { ...command, runningMs, spec: await resolveAfter(parts, spec, caller) };
        await learnDependencies(state, store, dependenciesOf(resolved));
        return withNewest(id, caller, (saved) =>
          loop.run(caller, (draft, nowMs) => requeueJob(draft, { ...resolved, saved }, parts.random, nowMs)),
        );
      });
      const [jobId = id] = record.jobIds;
      return { jobId, newJob: jobId !== id };
    }),

    ExtendJob: unary(async ({ jobId: named, byMs, requestId }, caller) => {
      if (!Number.isSafeInteger(byMs) || byMs <= 0 || byMs > extendMsMax) {
        throw new MusterError('invalid', `by_ms: ${byMs} ms; more than 0 and at most 365 days`);
      }
      if (requestId === undefined) {
        const id = await resolveJobId(parts, named, caller);
        await loop.run(caller, (draft, nowMs) => extendJob(draft, id, byMs, nowMs));
        return jobToWire(view(await read(id, caller)));
      }
      const command = { requestId, digest: intentDigest(['extend', named, byMs]), byMs };
      const { record } = await requests.once(command, async () => {
        const jobId = await resolveJobId(parts, named, caller);
        return loop.run(caller, (draft, nowMs) => extendJobOnce(draft, { ...command, jobId }, nowMs));
      });
      return jobToWire(view(await read(record.jobIds[0] ?? named, caller)));
    }),

    GetTrainingStatus: unary(async (request, caller) => ({
      markdown: parts.statusOf(await read(request.jobId, caller)),
    })),

    ExplainJob: unary(async (request, caller) => {
      const record = await read(request.jobId, caller);
      const ahead = jobsAhead(state.jobs.values(), record.job);
      const job = await detailed(record, caller);
      const silent = silentNodes(parts, record.job);
      const { summary, details, nextSteps } = explain(
        job,
        ahead,
        silent,
        parts.leases.paused(),
        resumeCandidates(record.job)[0] ?? null,
      );
      const losses = await outputLosses(parts.logs.directoryOf(record.job.id), record.job.lastAttempt);
      return { job: jobToWire(job), summary, details: [...details, ...losses], nextSteps: [...nextSteps] };
    }),
  };
}

/** Nodes on which a task of it may be running. Before its release none is, and an attempt does not wait for the silent. */
function silentNodes({ agents, leases }: JobCallParts, job: Job): readonly SilentNode[] {
  const attempt = currentAttempt(job);
  if (attempt === null || !isReleased(attempt)) return [];
  const held = attempt.tasks.filter((task) => task.state !== 'ended' && !agents.isOnline(task.node));
  return held.map(({ node }) => ({
    node,
    silentForMs: agents.silentForMs(node),
    fence: leases.taskFence(node, attempt),
    isHeld: job.spec.nodeLoss === 'hold',
    onExpiry: job.spec.onLeaseExpiry,
  }));
}

/** A state this version does not know would be listed as another one. */
function knownState(wire: string): JobStateKind {
  const state = jobStateWire.fromWire(wire);
  if (jobStateWire.toWire(state) === wire) return state;
  throw new MusterError('invalid', `states: there is no job state ${wire}`);
}

function inSlices<T>(values: readonly T[], length: number): readonly (readonly T[])[] {
  const count = Math.ceil(values.length / length);
  return Array.from({ length: count }, (_, index) => values.slice(index * length, (index + 1) * length));
}

function filtersOf({ project, user, label, sinceMs }: ListJobsRequest__Output): JobFilters {
  const [name = '', value = null] = label?.split(/=(.*)/s) ?? [];
  return { project, user, sinceMs, label: label === undefined ? undefined : { name, value } };
}
