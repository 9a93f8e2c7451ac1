/** The agents' side of the coordinator. Decodes, hands to commands, encodes. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Heartbeat__Output } from '@muster/common/gen/muster/v1/Heartbeat';
import type { Hello__Output } from '@muster/common/gen/muster/v1/Hello';
import type { NodeStatus__Output } from '@muster/common/gen/muster/v1/NodeStatus';
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TaskReport } from '@muster/common/views';
import { taskReportFromWire } from '@muster/common/wire/codec';
import { conditionFromWire, inventoryFromWire } from '@muster/common/wire/nodeCodec';
import { taskRefFromWire, taskRefToWire } from '@muster/common/wire/taskRef';
import { desiredOf, heldTask } from '../agents/desired.ts';
import type { AgentRegistry } from '../agents/registry.ts';
import { AgentSession } from '../agents/session.ts';
import { callerOf } from '../auth/interceptor.ts';
import { applyJobEvent } from '../commands/jobs.ts';
import { hello, nodeStatus, report } from '../commands/nodes.ts';
import type { Loop } from '../loop.ts';
import { currentAttempt } from '../model.ts';
import type { ClusterState } from '../state.ts';
import type { TimeLimits } from '../tasks/timeLimits.ts';
import { endWithError, unary } from './calls.ts';
import { type JoinParts, join } from './join.ts';
import { type LogUploadParts, serveUpload } from './logUploads.ts';
import { serveTelemetry, type TelemetryUploadParts } from './telemetryUploads.ts';

/** Session messages that this coordinator and its agents understand each other in. */
const protocolVersion = 1;

export interface AgentHubParts extends JoinParts, LogUploadParts, TelemetryUploadParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
  readonly leaseMs: number;
  readonly timeLimits: TimeLimits;
  readonly wallMs: () => number;
}

type SessionCall = ServerDuplexStream<AgentMessage__Output, CoordinatorMessage>;

export function agentHubCalls(parts: AgentHubParts): AgentHubHandlers {
  return {
    Join: unary((request, metadata) => join(parts, request, metadata)),
    Session: (call) => serveSession(parts, call),
    UploadLogs: (call) => serveUpload(parts, call),
    UploadTelemetry: (call) => serveTelemetry(parts, call),
  };
}

function serveSession(parts: AgentHubParts, call: SessionCall): void {
  const caller = callerOf(call);
  const node = caller.kind === 'agent' ? caller.node : null;
  /** Messages may follow Hello before its commit is done; they wait for it, in order. */
  let opening: Promise<AgentSession> | null = null;
  let session: AgentSession | null = null;
  let isClosed = false;
  const refuse = (error: MusterError) => endWithError(call, error);
  if (node === null) {
    refuse(new MusterError('permission_denied', 'only agents have sessions'));
    return;
  }

  call.on('data', (message: AgentMessage__Output) => {
    // Said twice, as any message may be, it opens nothing anew.
    if (message.hello != null && opening === null) {
      opening = beginSession(parts, call, node, message.hello).then((opened) => {
        session = opened;
        // It broke while the commit was under way: kept, it would pass for connected until it counts as silent.
        if (isClosed) closed();
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
    isClosed = true;
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
  const conditions = wire.conditions.map(conditionFromWire);
  const command = { name: node, instanceId, bootId, agentVersion, inventory, conditions, observed };
  await parts.loop.run((draft, nowMs) => hello(draft, command, nowMs));
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
      if (heldTask(draft.job(task.jobId), task, session.node) !== undefined) {
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
  if (message.status != null) await takeStatus(parts, session, message.status);
}

async function takeStatus(
  parts: AgentHubParts,
  session: AgentSession,
  status: NodeStatus__Output,
): Promise<void> {
  const inventory = status.inventory === null ? null : inventoryFromWire(status.inventory);
  const conditions = status.conditions.map(conditionFromWire);
  const command = { name: session.node, inventory, conditions };
  await parts.loop.run((draft, nowMs) => {
    // It waited for its turn, and a newer Hello may have come first: what was true before that is not news.
    if (parts.agents.isCurrent(session)) nodeStatus(draft, command, nowMs);
  });
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
    const desired = desiredOf(job, task, session.node);
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
  session.acknowledge(heartbeat.seq, verdicts, parts.wallMs());
  session.remind(reports, (id) => parts.state.jobs.get(id));
  // Reports are sent when they happen; those in heartbeats repair what was lost on the way.
  const news: TaskReport[] = [];
  for (const each of reports) {
    const recorded = heldTask(parts.state.jobs.get(each.task.jobId), each.task, session.node)?.state;
    if (recorded === undefined || recorded === 'ended') continue;
    parts.timeLimits.note(each);
    if (each.state === 'ended' || (each.state === 'running' && recorded !== 'running')) news.push(each);
  }
  if (news.length > 0) {
    takeReports(parts, session, news).catch((error: unknown) => {
      parts.log.warn(
        { node: session.node, error: messageOf(error) },
        'reports of a heartbeat were not taken',
      );
    });
  }
}
