/**
 * Whether a program has loaded the checkpoint that its attempt was offered, by the first steps in its output. Pure.
 *
 * A program that starts from scratch prints step 0 or 1 first, or as many steps as lie between two of its lines. So it
 *
 * - has loaded a checkpoint when its first step is larger than that, and not below the step of the checkpoint;
 * - has not loaded the checkpoint when it starts like one from scratch, or below half of the step of the checkpoint.
 *
 * Otherwise nothing is claimed: a first line at step 500 after a checkpoint of step 500 may be either, where every 500th step
 * is printed, and a program that begins a little before the checkpoint has loaded one that it prefers itself.
 */
export interface FirstStep {
  readonly step: number;
  /** null: the line has none. */
  readonly epoch: number | null;
  /** The step is that of a progress bar, which begins at 0 whatever the program has loaded. */
  readonly isOfBar: boolean;
}

export interface ResumeFinding {
  readonly kind: 'resume_ignored' | 'resume_confirmed';
  /** The first in the output. */
  readonly step: number;
}

export class ResumeWatch {
  private readonly offered: number | null;
  private first: FirstStep | null = null;
  private isOver = false;

  /** @param offered step of the checkpoint; null: it is not known */
  constructor(offered: number | null) {
    this.offered = offered;
  }

  /**
   * The next line of metrics with a step.
   * @returns a finding at most once; null: nothing is known yet, or nothing will be
   */
  row(row: FirstStep): ResumeFinding | null {
    if (this.isOver || (row.isOfBar && row.step <= 1)) return null;
    if (this.first === null) {
      this.first = row;
      const kind = this.byFirst(row);
      return kind === null ? null : this.found(kind, row.step);
    }
    const between = row.step - this.first.step;
    // Two lines of one step, of the training and of an evaluation.
    if (between === 0) return null;
    this.isOver = true;
    const kind = between < 0 ? null : this.byTwo(this.first, between);
    return kind === null ? null : this.found(kind, this.first.step);
  }

  private found(kind: ResumeFinding['kind'], step: number): ResumeFinding {
    this.isOver = true;
    return { kind, step };
  }

  private byFirst({ step, epoch }: FirstStep): ResumeFinding['kind'] | null {
    const { offered } = this;
    // No program prints every n steps and saves every n - 1.
    if (offered !== null && offered > 1 && step === offered + 1) return 'resume_confirmed';
    // Steps may be counted from 0 in each epoch.
    if (epoch !== null && epoch >= 1) return null;
    if (offered === null) return step <= 1 ? 'resume_ignored' : null;
    return (step <= 1 && step < offered - 1) || step * 2 < offered ? 'resume_ignored' : null;
  }

  /** @param between steps between the first line and the next */
  private byTwo({ step, epoch }: FirstStep, between: number): ResumeFinding['kind'] | null {
    const { offered } = this;
    const isLikeScratch = step <= Math.max(1, between);
    if (!isLikeScratch) return offered === null || step >= offered ? 'resume_confirmed' : null;
    const isBehind = offered !== null && step < offered - 1;
    return isBehind && (epoch === null || epoch < 1) ? 'resume_ignored' : null;
  }
}
