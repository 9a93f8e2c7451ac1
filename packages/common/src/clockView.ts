/** The clocks of the coordinator, as the API shows them. */

/**
 * What the trusted time rests on. `first`: nothing has confirmed it since the first start. `crossed`: the time that passed over
 * a reboot or a move is unknown. `confirmed`: it continues by CLOCK_BOOTTIME alone.
 */
export const clockBases = ['first', 'crossed', 'confirmed'] as const;
export type ClockBasis = (typeof clockBases)[number];

export interface ClockView {
  /** The wall clock of the coordinator's machine, milliseconds since 1970. */
  readonly systemWallMs: number;
  /** The wall clock that decisions are made by, milliseconds since 1970. */
  readonly trustedWallMs: number;
  readonly basis: ClockBasis;
  /** True if the kernel says that its clock is synchronised. Null if it was not asked, or cannot be asked. */
  readonly isSynchronised: boolean | null;
  /** The present time by the median of the agents that stayed up. Null if there is none. */
  readonly agentsWallMs: number | null;
  /** Trusted time at which a step of the system clock was noticed that nothing confirms. Null if there is none. */
  readonly steppedSinceMs: number | null;
}
