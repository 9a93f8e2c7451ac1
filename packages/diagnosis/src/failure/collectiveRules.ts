/** Reports of ranks about each other, and stops that were requested. */

import type { FailureVerdict } from './finding.ts';
import type { SignatureRule } from './signature.ts';

export const collectiveRules: readonly SignatureRule[] = [
  {
    name: 'collective timeout',
    kind: 'nccl_timeout',
    strength: 'collective',
    patterns: [
      /Watchdog caught collective operation timeout/,
      /Received a dump signal due to a collective timeout/,
      /Timed out waiting \d{1,12} ?ms for (?:send|recv) operation/,
    ],
    hints: ['collective operation timeout', 'collective timeout', 'Timed out waiting'],
    // A peer was silent for as long as that; the rank that complains has only waited.
    consequence: true,
    blame: 'unknown',
  },
  {
    name: 'watchdog stuck',
    kind: 'nccl_timeout',
    strength: 'collective',
    patterns: [
      /Heartbeat monitor timed out! Process will be terminated/,
      /ProcessGroupNCCL's watchdog got stuck for \d{1,9} seconds/,
    ],
    hints: ['Heartbeat monitor', "NCCL's watchdog"],
    consequence: true,
    blame: 'unknown',
  },
  {
    name: 'peer lost',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      /ncclRemoteError/,
      /remote process exit/,
      [
        /gloo|ProcessGroup|NCCL|c10d|TCPStore|Socket/,
        /[Cc]onnection (?:was )?(?:reset|closed|refused|aborted)|Broken pipe|Socket closed|failed to recv, got 0 bytes/,
      ],
      [/NCCL WARN /, /Call to (?:recv|send|connect|accept)\b.{0,100} failed|socketProgress\w{0,20}: /],
      /recvValue failed/,
      /Application timeout caused pair closure/,
      [/DistBackendError/, /[Cc]onnection (?:reset|closed|refused)|Broken pipe/],
    ],
    hints: [
      'nccl',
      'emote process',
      'onnection',
      'roken pipe',
      'ocket closed',
      'to recv',
      'recvValue',
      'pair closure',
      'NCCL WARN',
    ],
    consequence: true,
  },
  {
    name: 'nccl misused',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [/ncclInvalidUsage/, /ncclInvalidArgument/, /Duplicate GPU detected/],
    hints: ['ncclInvalid', 'Duplicate GPU'],
    blame: 'job',
    retry: 'after_change',
    advice: 'The program uses NCCL wrongly, mostly two ranks on one GPU: choose the device by LOCAL_RANK.',
  },
  {
    name: 'rdma completion',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      [/Got completion (?:from peer|with)/i, /with (?:status|error)[ =:]{1,3}(?!0|5\b)\d/i],
      /\bmlx5: \S{1,200}: got completion with error:/,
    ],
    hints: ['ot completion'],
    weigh: completionVerdict,
  },
  {
    // A work request that was flushed: the queue had failed before, and the first completion has the reason.
    name: 'rdma flushed',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [[/Got completion (?:from peer|with)/i, /with (?:status|error)[ =:]{1,3}5\b/i]],
    hints: ['ot completion'],
    consequence: true,
  },
  {
    name: 'nccl system error',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [/ncclSystemError/i, [/NCCL error/i, /unhandled system error/i]],
    hints: ['ncclSystemError', 'unhandled system'],
  },
  {
    name: 'nccl error',
    kind: 'nccl_error',
    strength: 'collective',
    patterns: [
      /ncclInternalError/,
      /ncclUnhandledCudaError/,
      [/NCCL error/, /unhandled cuda error/],
      /^torch\.distributed\.DistBackendError/,
    ],
    hints: ['ncclInternal', 'ncclUnhandled', 'unhandled cuda', 'DistBackendError'],
    blame: 'unknown',
  },
  {
    name: 'rendezvous closed',
    kind: 'rendezvous',
    strength: 'collective',
    patterns: [
      /Rendezvous(?:Connection|Closed|GracefulExit)Error/,
      /has failed to send a keep-alive heartbeat to the rendezvous/,
    ],
    hints: ['Rendezvous', 'keep-alive heartbeat'],
    consequence: true,
    atAnyLevel: true,
  },
  {
    name: 'rendezvous',
    kind: 'rendezvous',
    strength: 'collective',
    patterns: [
      /The client socket has timed out after/,
      /RendezvousTimeoutError/i,
      /Timed out after \d{1,9} seconds waiting for clients/i,
      /server socket has failed to listen on any/i,
      [/EADDRINUSE|errno:? 98\b|code: -98/i, /address already in use/i],
    ],
    hints: ['client socket', 'Rendezvous', 'waiting for clients', 'server socket', 'ddress already in use'],
    atAnyLevel: true,
  },
  {
    // Some other process of its cluster has died, and this line does not know why.
    name: 'ray actor lost',
    kind: 'unknown',
    strength: 'exit',
    patterns: [
      /^(?:ray\.exceptions\.)(?:ActorDiedError|RayActorError|ActorUnavailableError|WorkerCrashedError|NodeDiedError|OwnerDiedError)\b/,
    ],
    hints: ['ray.exceptions.'],
    consequence: true,
  },
  {
    name: 'stop requested',
    kind: 'stopped_by_signal',
    strength: 'stop',
    patterns: [
      /Received \d{1,3} death signal/,
      /SignalException: Process \d{1,10} got signal: \d/,
      /\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,200} CANCELLED AT /,
    ],
    hints: ['death signal', 'SignalException', 'CANCELLED'],
    consequence: true,
    atAnyLevel: true,
  },
  {
    // torchrun does so when a stop was requested, and when one of its workers has died.
    name: 'workers closed',
    kind: 'stopped_by_signal',
    strength: 'stop',
    patterns: [
      /(?:Sending process \d{1,10} closing signal|Closing process \d{1,10} via signal) SIG(?:TERM|INT)/,
    ],
    hints: ['closing signal', 'via signal'],
    consequence: true,
    atAnyLevel: true,
  },
];

/**
 * What a failed work request of RDMA is attributed to, by its status in libibverbs (ibv_wc_status): 4 is a local protection
 * error, which the memory of this node causes; 12 and 13 are answers that never came, which the network causes.
 */
const status = /with (?:status|error)[ =:]{1,3}(\d{1,3})\b/i;
/** Local: length, queue operation, protection. */
const localStatuses: readonly number[] = [1, 2, 4];

function completionVerdict(text: string): FailureVerdict {
  const found = status.exec(text);
  return found !== null && localStatuses.includes(Number(found[1]))
    ? { blame: 'node', retry: 'other_node' }
    : {};
}
