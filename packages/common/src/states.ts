/**
 * The states of jobs, attempts and tasks, as the words of docs/ARCHITECTURE.md define them. The coordinator's
 * `lifecycle/transition.ts` draws their state machine, and runs it.
 */

export const jobStates = [
  'queued',
  'starting',
  'running',
  'stopping',
  'succeeded',
  'failed',
  'cancelled',
] as const;
export type JobStateKind = (typeof jobStates)[number];

export const terminalJobStates = ['succeeded', 'failed', 'cancelled'] as const;
export type TerminalJobState = (typeof terminalJobStates)[number];

export function isTerminal(state: JobStateKind): state is TerminalJobState {
  return (terminalJobStates as readonly string[]).includes(state);
}

export const attemptStates = ['allocated', 'claimed', 'running', 'ended'] as const;
export type AttemptStateKind = (typeof attemptStates)[number];

/** `claimed`: its node is prepared; `ready`: and its paths to the other nodes of the gang are good. */
export const taskStates = ['assigned', 'claimed', 'running', 'ended', 'ready'] as const;
export type TaskStateKind = (typeof taskStates)[number];

export const nodeStates = ['online', 'silent'] as const;
export type NodeStateKind = (typeof nodeStates)[number];
