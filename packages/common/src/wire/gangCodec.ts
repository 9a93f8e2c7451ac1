/** Wire messages ↔ the words of gangs. */
import {
  type Endpoint,
  failureSources,
  type PathBandwidth,
  type PathCheck,
  type PathFindings,
  type PreflightResult,
  preflightBackends,
  type TaskFailure,
} from '../gangs.ts';
import type { Check__Output, Check as WireCheck } from '../gen/muster/v1/Check.ts';
import type { Checked__Output, Checked as WireChecked } from '../gen/muster/v1/Checked.ts';
import type { Endpoint__Output, Endpoint as WireEndpoint } from '../gen/muster/v1/Endpoint.ts';
import type { LeftOut__Output, LeftOut as WireLeftOut } from '../gen/muster/v1/LeftOut.ts';
import type {
  PathBandwidth__Output,
  PathBandwidth as WireBandwidth,
} from '../gen/muster/v1/PathBandwidth.ts';
import type {
  PreflightResult__Output,
  PreflightResult as WirePreflightResult,
} from '../gen/muster/v1/PreflightResult.ts';
import type { TaskFailure__Output, TaskFailure as WireTaskFailure } from '../gen/muster/v1/TaskFailure.ts';
import type { TaskRef } from '../ids.ts';
import { blames, causeKinds } from '../spec/causes.ts';
import type { Cause, ExcludedNode } from '../views.ts';
import { known } from './enums.ts';
import { taskRefToWire } from './taskRef.ts';

export function endpointToWire(endpoint: Endpoint): WireEndpoint {
  const { address, network, speedMbps, rdma } = endpoint;
  return {
    address,
    network: network ?? '',
    interface: endpoint.interface ?? '',
    ...(speedMbps === null ? {} : { speedMbps }),
    rdma,
  };
}

export function endpointFromWire(wire: Endpoint__Output): Endpoint {
  return {
    address: wire.address,
    network: wire.network || null,
    interface: wire.interface || null,
    speedMbps: wire.speedMbps ?? null,
    rdma: wire.rdma,
  };
}

export function checkToWire(task: TaskRef, check: PathCheck): WireCheck {
  const { round, addresses, peers, preflight } = check;
  return {
    task: taskRefToWire(task),
    round,
    addresses: [...addresses],
    peers: peers.map((peer) => ({ ...peer })),
    preflight:
      preflight === null
        ? null
        : {
            masterAddr: preflight.master.addr,
            masterPort: preflight.master.port,
            timeoutMs: preflight.timeoutMs,
          },
  };
}

export function checkFromWire(wire: Check__Output): PathCheck {
  const { round, addresses, peers, preflight } = wire;
  return {
    round,
    addresses,
    peers,
    preflight:
      preflight === null
        ? null
        : {
            master: { addr: preflight.masterAddr, port: preflight.masterPort },
            timeoutMs: preflight.timeoutMs,
          },
  };
}

export function findingsToWire(task: TaskRef, findings: PathFindings): WireChecked {
  const { round, paths, preflight } = findings;
  return {
    task: taskRefToWire(task),
    round,
    paths: paths.map(({ error, ...path }) => ({ ...path, error: error ?? '' })),
    preflight: preflight === null ? null : preflightResultToWire(preflight),
  };
}

export function findingsFromWire(wire: Checked__Output): PathFindings {
  const { round, paths, preflight } = wire;
  return {
    round,
    paths: paths.map(({ error, ...path }) => ({ ...path, error: error || null })),
    preflight: preflight === null ? null : preflightResultFromWire(preflight),
  };
}

function preflightResultToWire(result: PreflightResult): WirePreflightResult {
  return {
    error: result.error ?? '',
    backend: result.backend,
    pairs: result.pairs.map((pair) => ({ ...pair })),
    allReduceBytesPerS: result.allReduceBytesPerS ?? 0,
  };
}

function preflightResultFromWire(wire: PreflightResult__Output): PreflightResult {
  return {
    error: wire.error || null,
    backend: known(preflightBackends, wire.backend, 'tcp'),
    pairs: wire.pairs,
    allReduceBytesPerS: wire.allReduceBytesPerS || null,
  };
}

export function taskFailureToWire(failure: TaskFailure): WireTaskFailure {
  const { rank, kind, blame, line, ...rest } = failure;
  return {
    ...rest,
    kind: kind ?? '',
    blame: blame ?? '',
    line: line ?? 0,
    ...(rank === null ? {} : { rank }),
  };
}

export function taskFailureFromWire(wire: TaskFailure__Output): TaskFailure {
  return {
    source: known(failureSources, wire.source, 'exit'),
    consequence: wire.consequence,
    rank: wire.rank ?? null,
    message: wire.message,
    kind: wire.kind === '' ? null : known(causeKinds, wire.kind, 'unknown'),
    blame: blames.find((each) => each === wire.blame) ?? null,
    line: wire.line || null,
    atBoottimeMs: wire.atBoottimeMs,
  };
}

/** @param toWire of causes; they live with the job's own messages */
export function excludedNodeToWire(
  each: ExcludedNode,
  toWire: (cause: Cause) => WireLeftOut['cause'],
): WireLeftOut {
  return { node: each.node, cause: toWire(each.cause) ?? null };
}

export function excludedNodeFromWire(
  wire: LeftOut__Output,
  fromWire: (cause: NonNullable<LeftOut__Output['cause']>) => Cause,
): ExcludedNode | null {
  return wire.cause === null ? null : { node: wire.node, cause: fromWire(wire.cause) };
}

export function pathBandwidthToWire(each: PathBandwidth): WireBandwidth {
  return { ...each };
}

export function pathBandwidthFromWire(wire: PathBandwidth__Output): PathBandwidth {
  return { ...wire, backend: known(preflightBackends, wire.backend, 'tcp') };
}
