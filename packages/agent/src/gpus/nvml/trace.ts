/**
 * Where the reader stands: the number of the card and of the function it is about to call, in a page of memory that the
 * agent can read while the reader hangs, and still when it has crashed. Noting it is one store to memory.
 */

/** Positions in the page, as 32-bit integers. */
export const tracePage = { bytes: 8, card: 0, call: 1 } as const;

/** No card, or no call. */
export const none = -1;
