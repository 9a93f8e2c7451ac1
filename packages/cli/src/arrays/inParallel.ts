/**
 * Does something with each of them, in their order, a few at the same time.
 * @throws the first error, once what was under way has ended; nothing more begins then
 */
export async function inParallel<T>(
  values: Iterable<T>,
  atOnce: number,
  work: (value: T) => Promise<void>,
): Promise<void> {
  const queue = values[Symbol.iterator]();
  let failed = false;
  const worker = async () => {
    for (let next = queue.next(); !failed && next.done !== true; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
