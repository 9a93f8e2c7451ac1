/**
 * A port of this node that is held from a task's preparation to the moment of its launch: rank 0's rendezvous listens on
 * it then, and until then the peers of the gang try their paths with it.
 */
export interface HeldPort {
  readonly port: number;
  /** Frees it for the task, which can listen on it at once. Safe to call twice. */
  release(): Promise<void>;
}
