/** Does the same with each item, some at the same time. The first failure ends all, and is thrown once nothing runs any longer. */
export async function someAtOnce<T>(
  items: Iterable<T>,
  most: number,
  abort: AbortSignal,
  act: (item: T, abort: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([abort, failed.signal]);
  const rest = items[Symbol.iterator]();
  let first: { readonly error: unknown } | null = null;
  const worker = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      if (signal.aborted) return;
      try {
        await act(next.value, signal);
      } catch (error) {
        first ??= { error };
        failed.abort(error);
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: most }, worker));
  if (first !== null) throw (first as { readonly error: unknown }).error;
  abort.throwIfAborted();
}
