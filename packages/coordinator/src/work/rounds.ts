/** Resolves once the other pending events were handled. Long work awaits it between its pieces, so that nothing starves. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
