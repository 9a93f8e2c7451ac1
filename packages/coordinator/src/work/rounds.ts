/** Resolves once whatever else has come in was handled: long work gives way with it between its pieces. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
