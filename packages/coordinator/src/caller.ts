/** On whose behalf something is done. Every command has a caller, and every event names it. */
import type { NodeName } from '@muster/common/ids';

interface Authenticated {
  /** Id of the credential that the call was made with; it begins with its kind. */
  readonly id: string;
  /** Address of the client without its port; null: unknown. */
  readonly peer: string | null;
}

/** Somebody outside, as the interceptor has established it. */
export type Identity =
  | (Authenticated & { readonly kind: 'admin' })
  | AgentIdentity
  | (Authenticated & { readonly kind: 'join'; readonly node: NodeName });

export type AgentIdentity = Authenticated & {
  readonly kind: 'agent';
  readonly node: NodeName;
  /** It has shown the secret that its credential is being renewed to. */
  readonly renewed: boolean;
};

export type Caller = Identity | Coordinator;

/** A part of this process that acts by itself, such as the time limits. */
export interface Coordinator {
  readonly kind: 'coordinator';
  readonly part: string;
}

export function coordinatorPart(part: string): Coordinator {
  return { kind: 'coordinator', part };
}

/** Whose jobs are what a caller submits. As long as there are no other users, people are the admin. */
export function userOf(caller: Caller): string {
  return caller.kind === 'agent' || caller.kind === 'join' ? caller.node : caller.kind;
}

/** As events name a caller. */
export interface CallerName {
  /** `admin`, `agent:gpu-1:0f3a…`, `join:77ab…`, or `coordinator: time limit`. Empty: a notice, which nobody caused. */
  readonly by: string;
  /** Empty: the coordinator itself. */
  readonly peer: string;
}

export function callerName(caller: Caller): CallerName {
  if (caller.kind === 'coordinator') return { by: `coordinator: ${caller.part}`, peer: '' };
  return { by: caller.id, peer: caller.peer ?? '' };
}
