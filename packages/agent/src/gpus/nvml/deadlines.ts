/** How long NVML's reader is waited for, and how long it is left alone after it failed. */

export interface NvmlDeadlines {
  /** Opening the driver and listing: seconds per card where nothing keeps the cards initialised. */
  readonly listMs: number;
  readonly sampleMs: number;
  /** Before a card at which a reader hung or crashed is read again; doubles each time, up to the maximum. */
  readonly avoidMs: number;
  readonly avoidMaxMs: number;
  /** Before a reader is started again that ended for no reason of one card; likewise. */
  readonly restartMs: number;
  readonly restartMaxMs: number;
  /**
   * Age of a reader from which on a listing starts over with a new one while a card is missing: a driver that is open
   * does not notice its return.
   */
  readonly refreshMs: number;
}

export const nvmlDeadlines: NvmlDeadlines = {
  listMs: 60_000,
  sampleMs: 3_000,
  avoidMs: 60_000,
  avoidMaxMs: 30 * 60_000,
  restartMs: 1_000,
  restartMaxMs: 60_000,
  refreshMs: 60_000,
};
