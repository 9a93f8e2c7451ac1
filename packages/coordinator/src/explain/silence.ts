/** What is known of a silent node with tasks of a job, what happens when, and what a person can do: in sentences. Pure. */

export interface SilentNode {
  readonly node: string;
  /** null: no contact since the coordinator started. */
  readonly silentForMs: number | null;
  /** Until its tasks of this job do not run there for certain; 0: now. null: they are never fenced. */
  readonly fencedInMs: number | null;
  readonly onExpiry: 'freeze' | 'kill';
}

/** @param paused nothing is rescheduled at the moment */
export function describeSilence(silent: SilentNode, paused: boolean): string {
  const { node, silentForMs, fencedInMs, onExpiry } = silent;
  const contact =
    silentForMs === null
      ? `node ${node} has not responded since the coordinator started`
      : `node ${node} has been silent for ${secondsText(silentForMs)}`;
  if (fencedInMs === null) {
    return (
      `${contact}: its task may be running, and the job waits for it (node_loss: hold) until a user confirms that the node ` +
      'is dead'
    );
  }
  const fence = onExpiry === 'freeze' ? 'frozen automatically' : 'killed automatically';
  const state =
    fencedInMs === 0
      ? `its task is ${fence} by now`
      : `its task may be running, and is ${fence} unless the node comes back`;
  if (paused) return `${contact}: ${state}; for now the attempt is not ended`;
  const when = fencedInMs === 0 ? '' : `in ${secondsText(fencedInMs)} `;
  return `${contact}: ${state}; ${when}the attempt ends as lost`;
}

/** What to type, once it is certain. */
export function silenceRemedy({ node }: Pick<SilentNode, 'node'>): string {
  return `if ${node} is certainly off, do not wait: muster node confirm-dead ${node}`;
}

function secondsText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
