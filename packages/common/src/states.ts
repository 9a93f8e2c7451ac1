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

export const attemptStates = ['allocated', 'released', 'running', 'ended'] as const;
export type AttemptStateKind = (typeof attemptStates)[number];

/** `prepared`: its node has all that it needs; `checked`: and its paths to the other nodes of the gang work. */
export const taskStates = ['assigned', 'prepared', 'checked', 'running', 'ended'] as const;
export type TaskStateKind = (typeof taskStates)[number];

export const nodeStates = ['online', 'silent'] as const;
export type NodeStateKind = (typeof nodeStates)[number];
