/** The agents' side of the coordinator: join, session, log upload. Decodes, hands to commands, encodes. */
import type { Metadata, ServerDuplexStream } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Heartbeat__Output } from '@muster/common/gen/muster/v1/Heartbeat';
import type { Hello__Output } from '@muster/common/gen/muster/v1/Hello';
import type { LogUpload__Output } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck } from '@muster/common/gen/muster/v1/LogUploadAck';
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TaskReport } from '@muster/common/views';
import {
  inventoryFromWire,
  taskRefFromWire,
  taskRefToWire,
  taskReportFromWire,
} from '@muster/common/wire/codec';
import { desiredOf } from '../agents/desired.ts';
import type { AgentRegistry } from '../agents/registry.ts';
import { AgentSession } from '../agents/session.ts';
import { callerOf } from '../auth/interceptor.ts';
import { hashToken } from '../auth/tokens.ts';
import { applyJobEvent } from '../commands/jobs.ts';
import { hello, report } from '../commands/nodes.ts';
import type { LogStore } from '../logs/logStore.ts';
import type { Loop } from '../loop.ts';
import { currentAttempt } from '../model.ts';
import type { ClusterState } from '../state.ts';
import type { Store } from '../store/store.ts';
import type { TimeLimits } from '../tasks/timeLimits.ts';
import { endWithError, unary } from './calls.ts';

/** Session messages that this coordinator and its agents understand each other in. */
const protocolVersion = 1;

export interface AgentHubParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly logs: LogStore;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly monotonicMs: () => number;
  readonly store: Store;
  readonly timeLimits: TimeLimits;
}

type SessionCall = ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>;

export function agentHubCalls(parts: AgentHubParts): AgentHubHandlers {
  return {
    Join: unary((request, metadata) =>
      join(parts, request.nodeName, request.credential, request.joinToken, metadata),
    ),
    Session: (call) => serveSession(parts, call),
    UploadLogs: (call) => serveUpload(parts, call),
  };
}

/** Trades the join token for the credential that the agent has made. Repeating it with the same credential is fine. */
async function join(
  parts: AgentHubParts,
  nodeName: string,
  credential: string,
  joinToken: string,
  metadata: Metadata,
): Promise<{ clusterId: string }> {
  const caller = callerOf({ metadata });
  if (caller.kind !== 'join' || caller.node !== nodeName) {
    throw new MusterError('permission_denied', `this join token is not for a node named "${nodeName}"`);
  }
  if (!/^muster_agent_[\w-]{43,128}$/.test(credential)) {
    throw new MusterError('invalid', 'the credential is too short; agents make 32 random bytes');
  }
  const credentialHash = hashToken(credential);
  await parts.loop.run((draft, nowMs) => {
    const token = draft.credential(hashToken(joinToken));
    if (token === undefined) throw new MusterError('unauthenticated', 'the join token is unknown');
    if (token.usedFor === credentialHash) return;
    if (token.usedFor !== null) {
      throw new MusterError(
        'already_exists',
        `this join token was used already; make another: muster token create ${nodeName}`,
      );
    }
    if (draft.hasAgent(nodeName)) {
      throw new MusterError(
        'already_exists',
        `a node named ${nodeName} has joined already; choose another name: muster token create NAME`,
      );
    }
    draft.putCredential({ ...token, usedFor: credentialHash });
    draft.putCredential({
      id: `agent:${nodeName}`,
      kind: 'agent',
      subject: nodeName,
      secretHash: credentialHash,
      createdAtMs: nowMs,
      expiresAtMs: null,
      usedFor: null,
    });
  });
  return { clusterId: parts.state.clusterId };
}

function serveSession(parts: AgentHubParts, call: SessionCall): void {
  const caller = callerOf(call);
  const node = caller.kind === 'agent' ? caller.node : null;
  /** Messages may follow Hello before its commit is done; they wait for it, in order. */
  let opening: Promise<AgentSession> | null = null;
  let session: AgentSession | null = null;
  const refuse = (error: MusterError) => endWithError(call, error);
  if (node === null) {
    refuse(new MusterError('permission_denied', 'only agents have sessions'));
    return;
  }

  call.on('data', (message: AgentMessage__Output) => {
    if (message.hello != null) {
      opening = beginSession(parts, call, node, message.hello).then((opened) => {
        session = opened;
        return opened;
      });
    }
    const handled = (async () => {
      if (opening === null) throw new MusterError('invalid', 'a session begins with Hello');
      await onMessage(parts, await opening, message);
    })();
    handled.catch((error: unknown) => {
      const known = error instanceof MusterError ? error : new MusterError('internal', messageOf(error));
      parts.log.warn({ node, error: known.message }, 'an agent session was ended');
      refuse(known);
    });
  });
  const closed = () => {
    if (session !== null && parts.agents.remove(session)) parts.log.info({ node }, 'agent disconnected');
  };
  call.on('end', () => {
    closed();
    call.end();
  });
  call.on('cancelled', closed);
  call.on('error', closed);
}

async function beginSession(
  parts: AgentHubParts,
  call: SessionCall,
  node: NodeName,
  wire: Hello__Output,
): Promise<AgentSession> {
  if (wire.protocolVersion !== protocolVersion) {
    throw new MusterError(
      'failed_precondition',
      `the agent of ${node} speaks protocol ${wire.protocolVersion} and this coordinator ${protocolVersion}; ` +
        'use the same version of Muster on both',
    );
  }
  parts.agents.admit(node, wire.instanceId, wire.bootId);
  const observed = wire.observed.map(taskReportFromWire).filter((each) => each !== null);
  const { instanceId, bootId, agentVersion } = wire;
  const inventory = inventoryFromWire(wire.inventory);
  await parts.loop.run((draft, nowMs) =>
    hello(draft, { name: node, instanceId, bootId, agentVersion, inventory, observed }, nowMs),
  );
  const stream = {
    write: (message: CoordinatorMessage) => void call.write(message),
    end: () => call.end(),
  };
  const session = new AgentSession({ node, instanceId, bootId }, stream);
  const { jobs } = parts.state;
  session.welcome(
    { heartbeatIntervalMs: parts.heartbeatIntervalMs, leaseMs: parts.leaseMs, term: 1 },
    jobs.values(),
    observed.map((each) => each.task),
    (id) => jobs.get(id),
    (id) => jobs.has(id) || parts.state.outcomes.has(id),
  );
  parts.agents.add(session);
  parts.log.info({ node, bootId, tasks: observed.length }, 'agent connected');
  parts.loop.wake();
  return session;
}

async function onMessage(
  parts: AgentHubParts,
  session: AgentSession,
  message: AgentMessage__Output,
): Promise<void> {
  // A newer connection of the same agent has taken over: what still trickles in here is history.
  if (!parts.agents.isCurrent(session)) return;
  parts.agents.heard(session);
  if (message.heartbeat != null) onHeartbeat(parts, session, message.heartbeat);
  if (message.claim != null) {
    const { task: wireTask, masterAddr, masterPort } = message.claim;
    const task = taskRefFromWire(wireTask);
    if (task === null) return;
    const master = masterPort === 0 ? null : { addr: masterAddr, port: masterPort };
    const job = await parts.loop.run((draft, nowMs) => {
      const owner = currentAttempt(draft.job(task.jobId))?.tasks[task.nodeRank]?.node;
      if (owner === session.node) {
        const { attempt, nodeRank } = task;
        applyJobEvent(draft, task.jobId, { kind: 'claim', attempt, nodeRank, master }, nowMs);
      }
      return draft.job(task.jobId);
    });
    // A claim for an attempt that is over: say so at once rather than at the next heartbeat.
    if (currentAttempt(job)?.number !== task.attempt) session.sync(task, job);
  }
  if (message.report != null) {
    const known = taskReportFromWire(message.report);
    if (known !== null) await takeReports(parts, session, [known]);
  }
}

async function takeReports(
  parts: AgentHubParts,
  session: AgentSession,
  reports: readonly TaskReport[],
): Promise<void> {
  await parts.loop.run((draft, nowMs) => report(draft, session.node, reports, nowMs));
}

/** Answers at once, from memory: a heartbeat must never wait for a commit. */
function onHeartbeat(parts: AgentHubParts, session: AgentSession, heartbeat: Heartbeat__Output): void {
  const reports = heartbeat.observed.map(taskReportFromWire).filter((each) => each !== null);
  const verdicts = reports.map(({ task }): TaskVerdict => {
    const job = parts.state.jobs.get(task.jobId);
    const wire = taskRefToWire(task);
    if (job === undefined) {
      const known = parts.state.outcomes.has(task.jobId);
      return { task: wire, verdict: known ? 'VERDICT_FORGET' : 'VERDICT_UNKNOWN' };
    }
    const desired = desiredOf(job, task.attempt, currentAttempt(job)?.tasks[task.nodeRank]);
    switch (desired.kind) {
      case 'assign':
      case 'release':
        return { task: wire, verdict: 'VERDICT_RUN' };
      case 'stop':
        return { task: wire, verdict: 'VERDICT_STOP' };
      case 'forget':
        return { task: wire, verdict: 'VERDICT_FORGET' };
      default: {
        const never: never = desired;
        return never;
      }
    }
  });
  session.acknowledge(heartbeat.seq, verdicts);
  session.remind(reports, (id) => parts.state.jobs.get(id));
  for (const each of reports) parts.timeLimits.note(each);
  // Reports are sent when they happen; those in heartbeats repair what was lost on the way.
  const news = reports.filter(({ task, state }) => {
    const job = parts.state.jobs.get(task.jobId);
    const known = currentAttempt(job)?.tasks[task.nodeRank];
    return (
      job?.lastAttempt === task.attempt && known !== undefined && known.state !== state && state !== 'claimed'
    );
  });
  if (news.length > 0) {
    takeReports(parts, session, news).catch((error: unknown) => {
      parts.log.warn(
        { node: session.node, error: messageOf(error) },
        'reports of a heartbeat were not taken',
      );
    });
  }
}

/** Output of a node's tasks. Only from the node that holds the task, and only while its attempt may still write (G6). */
function serveUpload(parts: AgentHubParts, call: ServerDuplexStream<LogUpload__Output, LogUploadAck>): void {
  const caller = callerOf(call);
  const node = caller.kind === 'agent' ? caller.node : null;
  const take = async (upload: LogUpload__Output) => {
    const task = taskRefFromWire(upload.task);
    if (task === null) return;
    if (!(await mayUpload(parts, node, task))) {
      // Dropped, and acknowledged as complete, so that the agent lets go of it.
      call.write({
        task: taskRefToWire(task),
        nextOffset: upload.offset + upload.data.length,
        complete: true,
      });
      return;
    }
    const nextOffset = await parts.logs.append(task, upload.offset, upload.data);
    const end = upload.offset + upload.data.length;
    const complete = upload.complete && nextOffset >= end && (await parts.logs.complete(task, end));
    call.write({ task: taskRefToWire(task), nextOffset, complete });
  };
  call.on('data', (upload: LogUpload__Output) => {
    call.pause();
    take(upload).then(
      () => call.resume(),
      (error: unknown) => {
        parts.log.error({ node, error: messageOf(error) }, 'output could not be stored');
        const busy = new MusterError('resource_exhausted', `output could not be stored: ${messageOf(error)}`);
        endWithError(call, busy);
      },
    );
  });
  call.on('end', () => call.end());
  call.on('error', () => {});
}

async function mayUpload(parts: AgentHubParts, node: NodeName | null, task: TaskRef): Promise<boolean> {
  if (node === null) return false;
  const current = currentAttempt(parts.state.jobs.get(task.jobId));
  if (current?.number === task.attempt) return current.tasks[task.nodeRank]?.node === node;
  // The last output of a task usually arrives after its end.
  const record = await parts.store.readJob(task.jobId);
  const attempt = record?.attempts.find((each) => each.number === task.attempt);
  return attempt?.tasks[task.nodeRank]?.node === node;
}
