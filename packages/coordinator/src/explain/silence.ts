/** What is known of a silent node with tasks of a job, what happens when, and what a person can do: in sentences. Pure. */

export interface SilentNode {
  readonly node: string;
  /** null: no contact since the coordinator started. */
  readonly silentForMs: number | null;
  /** Milliseconds from now; 0: already. null: its tasks of this job are never fenced. */
  readonly fence: {
    /** Until the lease of the task has ended and the node has fenced it, for certain. */
    readonly frozenInMs: number;
    /** Until the coordinator ends the task as lost. */
    readonly fencedInMs: number;
  } | null;
  /** Whether the job waits for the node because of its spec (`node_loss: hold`), and not because its task has no lease. */
  readonly isHeld: boolean;
  readonly onExpiry: 'freeze' | 'kill';
}

/** @param paused nothing is rescheduled at the moment */
export function describeSilence(silent: SilentNode, paused: boolean): string {
  const { fence, isHeld, onExpiry } = silent;
  const contact = `node ${contactText(silent)}`;
  if (fence === null) {
    const why = isHeld ? 'node_loss: hold' : 'on one machine its task has no lease';
    return (
      `${contact}: its task may be running, and the job waits for it (${why}) until the node responds or a user confirms ` +
      'that the node is dead'
    );
  }
  const { frozenInMs, fencedInMs } = fence;
  const fenced = onExpiry === 'freeze' ? 'frozen' : 'killed';
  const state =
    frozenInMs === 0
      ? `its lease has ended, and its task is ${fenced} by now`
      : `its task may be running, and is ${fenced} when its lease ends, in ${secondsText(frozenInMs)} at the latest`;
  if (paused) return `${contact}: ${state}; for now the attempt is not ended`;
  const when = fencedInMs === 0 ? 'the attempt ends' : `in ${secondsText(fencedInMs)} the attempt ends`;
  return `${contact}: ${state}; ${when} as lost unless the node responds before`;
}

/** For one line about the job: `node-2 has been silent for 17 s`. Empty: none is. */
export function silenceInShort(silent: readonly SilentNode[]): string {
  const [first] = silent;
  if (first === undefined) return '';
  return silent.length === 1 ? contactText(first) : `${silent.length} of its nodes are silent`;
}

/** What to do, and what to type once it is certain. */
export function silenceRemedies(silent: readonly Pick<SilentNode, 'node'>[]): readonly string[] {
  if (silent.length === 0) return [];
  const which = silent.length === 1 ? (silent[0]?.node ?? '') : 'the silent nodes';
  return [
    `check ${which}: is the machine on, can it reach the coordinator, does its agent run (there: systemctl status ` +
      'muster-agent, muster doctor)',
    ...silent.map(({ node }) => `if ${node} is certainly off, do not wait: muster node confirm-dead ${node}`),
  ];
}

function contactText({ node, silentForMs }: SilentNode): string {
  return silentForMs === null
    ? `${node} has not responded since the coordinator started`
    : `${node} has been silent for ${secondsText(silentForMs)}`;
}

function secondsText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
