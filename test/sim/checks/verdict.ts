/** What the checks require of the product. docs/guarantees.md defines those with a number. */
export const guarantees = {
  G1: 'A job whose submit was answered exists; no request and no id makes two jobs.',
  G2: 'Two attempts of a job never execute at once; no task is started twice, or executes without a lease.',
  G3: 'No task starts before its gang is released; a gang stops together; a GPU belongs to one task at most.',
  G4: 'Restarts and outages end no task; a frozen task is thawed soon after its node has contact again.',
  G5: 'Events have no gap and no repetition; a watch receives each, in order.',
  G6: 'Jobs that have ended never change; attempt numbers only grow; reports of earlier attempts change nothing.',
  G7: 'Recorded ends have happened, recorded causes are true, and what is unknown is not guessed.',
  resume: 'An attempt resumes from the newest verified checkpoint that its nodes can read.',
  preemption: 'Only preemptible jobs of lower priority are preempted, and not too often.',
  grace: 'A grace ends early when a checkpoint that was begun after the signal is verified, and only then.',
  hold: 'A job with node_loss: hold is never frozen, and rescheduled only after proof.',
  suspicion: 'Nothing is rescheduled while most nodes are silent.',
  exclusion: 'The next attempt excludes a node on which a start has failed.',
  phase:
    'Phases go forward; each end of one is judged once, before the next attempt, which runs the phase that follows.',
  pipeline:
    'A try of a step is one job, which starts once what it waits for has ended and is there; a run ends once, after what tidies up.',
  trigger:
    'What a trigger is for fires it once but in a pause, none is missed, and fires follow its overlap policy.',
  retry: 'Causes, number and pace of retries are those that the job asks for.',
  drains: 'A drained GPU or node gets no new work, and is empty by its deadline.',
  'array limit': 'No more jobs of an array run at the same time than its spec allows.',
  dependency: 'A job starts after its dependencies have ended as it asks for.',
  budget: 'What is submitted with a token that has a budget stays within it.',
  alert: 'An alert fires once each time that its condition holds, and is resolved when it no longer does.',
  ledger: 'Each GPU-second of an attempt is recorded once.',
  clock: 'What the coordinator records has the time of the world, whatever system clocks show.',
  liveness:
    'After the last fault, every job ends or has a true reason to wait, and nothing is left on any node.',
  assertion: 'No operation is refused because it would break a guarantee.',
  crash: 'No error is unhandled.',
} as const;

export type Guarantee = keyof typeof guarantees;

/** What the checks found. */
export interface Violation {
  readonly guarantee: Guarantee;
  readonly what: string;
  readonly atMs: number;
}

/** The number of violations kept of each guarantee. One broken rule can show a thousand times. */
const violationsMax = 5;

export class Verdict {
  readonly violations: Violation[] = [];
  private readonly nowMs: () => number;
  private readonly onViolation: (violation: Violation) => void;

  constructor(nowMs: () => number, onViolation: (violation: Violation) => void = () => {}) {
    this.nowMs = nowMs;
    this.onViolation = onViolation;
  }

  require(holds: boolean, guarantee: Guarantee, what: () => string): void {
    if (holds) return;
    const alike = this.violations.filter((violation) => violation.guarantee === guarantee);
    if (alike.length >= violationsMax) return;
    const violation: Violation = { guarantee, what: what(), atMs: this.nowMs() };
    this.violations.push(violation);
    this.onViolation(violation);
  }
}
