/**
 * Which of a program's progress bars is that of its training. Bars of evaluations have no label either, so the bar is known
 * by its total: the one that the program tells, or that of the bar which the lines with a loss follow.
 */
import type { Bar } from './bars.ts';

export class TrainingBar {
  #newest: Bar | null = null;
  #followed: Bar | null = null;
  #isChosen = false;
  #isSeen = false;

  /** null: there was no bar. */
  get bar(): Bar | null {
    return this.#followed;
  }

  /**
   * @param toldSteps how many steps there will be, if the program says so
   * @returns whether this is the bar of the training
   */
  see(bar: Bar, toldSteps: number | null): boolean {
    this.#newest = bar;
    const total = toldSteps ?? (this.#isChosen ? this.#followed?.total : undefined);
    if (total !== undefined && bar.total !== total) return false;
    this.#followed = bar;
    this.#isSeen = true;
    return true;
  }

  /** A line with a loss came: what it follows is its bar, unless the known one was there since the line before. */
  lossCame(): void {
    if (!this.#isChosen || !this.#isSeen) this.#followed = this.#newest ?? this.#followed;
    this.#isChosen = this.#followed !== null;
    this.#isSeen = false;
  }
}
