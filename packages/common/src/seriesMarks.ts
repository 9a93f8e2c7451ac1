/**
 * The rows of one series that outlive every thinning: its first, its last, the least, the greatest, and the first that is not a
 * finite number. Whoever drops rows keeps these. A mark of a part is a mark of the whole or is no extreme of it, so that dropping
 * again and again, at the agent and at the coordinator, never loses one.
 */

export class SeriesMarks {
  private first: number | null = null;
  private last: number | null = null;
  private least: number | null = null;
  private leastValue = Number.POSITIVE_INFINITY;
  private greatest: number | null = null;
  private greatestValue = Number.NEGATIVE_INFINITY;
  private notFinite: number | null = null;

  /**
   * Takes the next row of the series. Of equal extremes the first counts.
   * @param place of the row, greater than those before
   * @param low the least finite value of the row, and `high` the greatest: they differ where it stands for several. null: it has none
   * @param isNotFinite true if a value of the row is not a finite number
   */
  add(place: number, low: number | null, high: number | null, isNotFinite: boolean): void {
    this.first ??= place;
    this.last = place;
    if (isNotFinite) this.notFinite ??= place;
    if (low !== null && (this.least === null || low < this.leastValue)) {
      this.least = place;
      this.leastValue = low;
    }
    if (high !== null && (this.greatest === null || high > this.greatestValue)) {
      this.greatest = place;
      this.greatestValue = high;
    }
  }

  /** Places of the rows to keep, in no order; some may repeat. */
  get places(): readonly number[] {
    const { first, last, least, greatest, notFinite } = this;
    return [first, last, least, greatest, notFinite].filter((place) => place !== null);
  }
}
