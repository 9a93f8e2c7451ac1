/** Which events a watch asks for, and where it begins. */
export interface EventsWanted {
  /** Only events after this sequence number. 0: from the oldest kept; -1: only new ones. Default: 0. */
  readonly sinceSeq?: number;
  readonly follow?: boolean;
  /** A job or node. Default: all. */
  readonly subject?: string;
  /** Begins with the newest of the events that are asked for: 1 to 100,000 of them. Default: with the first of them. */
  readonly newest?: number;
  /** `-30m`, `now`, `2026-01-02T03:04:05Z` or milliseconds since 1970. */
  readonly startTime?: string;
  /** Written as `startTime`. Not with `follow`. */
  readonly endTime?: string;
}
