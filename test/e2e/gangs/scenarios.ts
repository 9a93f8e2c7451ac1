/**
 * What happens to gangs, and how each has to end. Data: `playScenario.ts` plays them, on containers and on network
 * namespaces alike. `rank` is the rank that something happens to, or whose host it happens to; every node has one.
 */
import type { CauseKind } from '@muster/common/spec/causes';
import type { Launcher } from '@muster/common/spec/types';
import type { TerminalJobState } from '@muster/common/states';

export type Fault =
  /** The program gives up by itself. */
  | { readonly kind: 'exits'; readonly rank: number }
  /** From outside, to the process of the rank alone. */
  | { readonly kind: 'signal'; readonly rank: number; readonly signal: 'SIGKILL' | 'SIGSTOP' }
  /** To the host of the rank, while the gang works; undone when the job has ended. */
  | { readonly kind: 'host is paused' | 'host is unplugged' | 'host loses power'; readonly rank: number }
  | { readonly kind: 'host is slow'; readonly rank: number; readonly bitsPerS: number };

export interface AttemptEnd {
  /** Any of these; null: it went well. */
  readonly causes: readonly CauseKind[] | null;
  /** Whose node and rank the cause names: the rank that the fault hit, or nobody in particular. */
  readonly blames: 'the victim' | 'anybody';
  /** What its message says, besides. */
  readonly message?: RegExp;
  /** Nobody could prove that it was dead: its successor has to keep its distance. */
  readonly fenced?: boolean;
}

export interface Scenario {
  readonly name: string;
  readonly nodes: number;
  /** Gangs of this size at the same time, on the same nodes. Default 1. */
  readonly gangs?: number;
  readonly fault: Fault | null;
  /** Default: torchrun. */
  readonly launcher?: Launcher;
  /** More flags of programs/allReduce.py. */
  readonly flags?: readonly string[];
  /** Of the job. Default 1. */
  readonly maxAttempts?: number;
  readonly state: TerminalJobState;
  readonly attempts: readonly AttemptEnd[];
  /** What happens is made by the kind of host, so `npm test` plays it on every kind. Default: it is played on one. */
  readonly dependsOnHost?: true;
}

const goesWell: AttemptEnd = { causes: null, blames: 'anybody' };

/** A lost node ends the attempt once it is fenced; the next one runs on the hosts that are left. */
const lostAndFenced: readonly AttemptEnd[] = [
  { causes: ['node_lost'], blames: 'the victim', fenced: true },
  goesWell,
];

export const scenarios: readonly Scenario[] = [
  {
    name: 'three nodes add up, with launcher env',
    nodes: 3,
    launcher: 'env',
    dependsOnHost: true,
    fault: null,
    state: 'succeeded',
    attempts: [goesWell],
  },
  {
    name: 'four nodes add up, and two such gangs on the same nodes keep apart',
    nodes: 4,
    gangs: 2,
    fault: null,
    state: 'succeeded',
    attempts: [goesWell],
  },
  {
    name: 'a rank exits 1',
    nodes: 2,
    fault: { kind: 'exits', rank: 1 },
    state: 'failed',
    attempts: [{ causes: ['exit_code'], blames: 'the victim' }],
  },
  {
    name: 'a rank is killed',
    nodes: 3,
    fault: { kind: 'signal', rank: 2, signal: 'SIGKILL' },
    state: 'failed',
    attempts: [{ causes: ['exit_code'], blames: 'the victim' }],
  },
  ...(['torchrun', 'env'] as const).map(
    (launcher): Scenario => ({
      // Nothing fails where it happened: the other gives up waiting for it, and only that has a failure to show. torchrun
      // would then wait five more minutes for the torchrun of the stopped rank, which knows of nothing (`_exit_barrier`).
      name: `a rank is stopped, with launcher ${launcher}`,
      nodes: 2,
      launcher,
      fault: { kind: 'signal', rank: 0, signal: 'SIGSTOP' },
      flags: ['--timeout=5'],
      state: 'failed',
      attempts: [{ causes: ['nccl_timeout'], blames: 'anybody', message: /: .*Timed out waiting 5000 ?ms/ }],
    }),
  ),
  {
    name: 'a host is slow',
    nodes: 2,
    dependsOnHost: true,
    fault: { kind: 'host is slow', rank: 1, bitsPerS: 2_000_000 },
    flags: ['--steps=100', '--numbers=2000'],
    state: 'succeeded',
    attempts: [goesWell],
  },
  {
    name: 'a host is paused',
    nodes: 2,
    dependsOnHost: true,
    fault: { kind: 'host is paused', rank: 1 },
    flags: ['--endless=1'],
    maxAttempts: 2,
    state: 'succeeded',
    attempts: lostAndFenced,
  },
  {
    name: 'a host loses power',
    nodes: 2,
    dependsOnHost: true,
    fault: { kind: 'host loses power', rank: 1 },
    flags: ['--endless=1'],
    maxAttempts: 2,
    state: 'succeeded',
    attempts: lostAndFenced,
  },
  // The last one: for some seconds after its cable is back a host may still find no route to another, and no gang of it starts.
  {
    name: 'a host is unplugged',
    nodes: 2,
    dependsOnHost: true,
    fault: { kind: 'host is unplugged', rank: 0 },
    flags: ['--endless=1'],
    maxAttempts: 2,
    state: 'succeeded',
    attempts: lostAndFenced,
  },
];
