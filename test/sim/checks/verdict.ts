/** What the checks hold the product to. Those with a number are of docs/guarantees.md, which says more of each. */
export const guarantees = {
  G1: 'A job whose submit was answered exists, and no id or request is used twice.',
  G2: 'Two attempts of a job never execute at once, no task starts twice, nothing executes without a lease.',
  G3: 'A gang starts released as one and stops as one, and a GPU belongs to one task at most.',
  G4: 'Restarts end no task: it is frozen at most, and not for long once its node is heard.',
  G5: 'Events are numbered without gap or repeat, and a watch gets each in order.',
  G6: 'What has ended never changes, attempt numbers only grow, and old reports change nothing.',
  G7: 'Ends and causes are recorded as they were.',
  resume: 'An attempt begins from the newest verified checkpoint that its nodes can read.',
  preemption: 'Only what may be preempted is, and only for what comes first.',
  grace: 'Nobody is killed before what it was to save is safe, or waited for when it is.',
  hold: 'A job that is to be held is neither frozen nor moved without proof.',
  suspicion: 'Nothing is given up while most nodes are silent together.',
  exclusion: 'A node that an attempt failed on before it began is left out of the next.',
  retry: 'A job is tried as often as its spec allows.',
  drains: 'What is drained, or not there, gets no work.',
  'array limit': 'Of an array no more jobs run than its spec allows.',
  dependency: 'A job starts after what it waits for.',
  ledger: 'The account of GPU time adds up.',
  liveness: 'With nothing in the way, every job ends or says truly why it waits, and nothing is left over.',
  assertion: 'The product never finds an invariant of its own broken.',
  crash: 'Nothing throws what nobody handles.',
} as const;

export type Guarantee = keyof typeof guarantees;

/** What the checks found. */
export interface Violation {
  readonly guarantee: Guarantee;
  readonly what: string;
  readonly atMs: number;
}

/** Of each guarantee. One broken rule can show a thousand times; the first few say it all. */
const violationsMax = 5;

export class Verdict {
  readonly violations: Violation[] = [];
  private readonly nowMs: () => number;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  require(holds: boolean, guarantee: Guarantee, what: () => string): void {
    if (holds) return;
    const alike = this.violations.filter((violation) => violation.guarantee === guarantee);
    if (alike.length >= violationsMax) return;
    this.violations.push({ guarantee, what: what(), atMs: this.nowMs() });
  }
}
