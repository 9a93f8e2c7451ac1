/** On whose behalf something is done. Every command has a caller, and every event names it. */
import type { NodeName } from '@muster/common/ids';
import { builtInAdmin, type Role, type Verb } from '@muster/common/people';

interface Authenticated {
  /** Id of the credential that the call was made with; it begins with its kind. */
  readonly id: string;
  /** Address of the client without its port; null: unknown. */
  readonly peer: string | null;
  /** Of the operation that makes the call, as `traceparentText` writes it. Absent: the call names none. */
  readonly traceparent?: string;
}

/** Somebody outside, as the interceptor has established it. */
export type Identity =
  | (Authenticated & { readonly kind: 'admin' })
  | UserIdentity
  | (Authenticated & { readonly kind: 'login'; readonly user: string })
  | AgentIdentity
  | AnonymousIdentity
  | (Authenticated & { readonly kind: 'join'; readonly node: NodeName });

export type AgentIdentity = Authenticated & {
  readonly kind: 'agent';
  readonly node: NodeName;
  /** It has shown the secret that its credential is being renewed to. */
  readonly renewed: boolean;
};

/** Somebody who has shown nothing, in a call that anybody may make. */
export type AnonymousIdentity = Authenticated & { readonly kind: 'anonymous' };

/** A person, or a program with a token of a user. */
export type UserIdentity = Authenticated & {
  readonly kind: 'user';
  readonly user: string;
  readonly role: Role;
  /** What the role and the scope of the token both allow. */
  readonly verbs: readonly Verb[];
  /** Projects of the user. */
  readonly projects: readonly string[];
  /** Projects outside of which the token is of no use; null: it is not limited. */
  readonly onlyProjects: readonly string[] | null;
  /** Id of the budget of the token. null: it has none. */
  readonly budget: string | null;
  /** What this call does with the jobs that it names, by the policy. */
  readonly use: 'read' | 'change';
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

/** Whose jobs are what a caller submits. */
export function userOf(caller: Caller): string {
  switch (caller.kind) {
    case 'user':
    case 'login':
      return caller.user;
    case 'agent':
    case 'join':
      return caller.node;
    case 'admin':
      return builtInAdmin;
    case 'anonymous':
    case 'coordinator':
      return caller.kind;
    default: {
      const never: never = caller;
      return never;
    }
  }
}

/** The budget that what a caller submits is counted in. null: none. */
export function budgetOf(caller: Caller): string | null {
  // An array that was stored by an earlier version has a caller without this member.
  return caller.kind === 'user' ? (caller.budget ?? null) : null;
}

/** The trace that what a caller submits belongs to. null: one of its own. */
export function traceparentOf(caller: Caller): string | null {
  return caller.kind === 'coordinator' ? null : (caller.traceparent ?? null);
}

/** As events name a caller. */
export interface CallerName {
  /** `admin`, `user:ann:5c1e…`, `agent:gpu-1:0f3a…`, `join:77ab…`, or `coordinator: time limit`. Empty: a notice, which nobody caused. */
  readonly by: string;
  /** Empty: the coordinator itself. */
  readonly peer: string;
}

export function callerName(caller: Caller): CallerName {
  if (caller.kind === 'coordinator') return { by: `coordinator: ${caller.part}`, peer: '' };
  return { by: caller.id, peer: caller.peer ?? '' };
}
