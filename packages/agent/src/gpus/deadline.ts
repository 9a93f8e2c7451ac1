/** @returns what the promise resolves to, or `late` when that takes longer; its later failure is nobody's concern */
export async function withDeadline<T>(promise: Promise<T>, deadlineMs: number): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, deadlineMs, 'late');
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {});
  }
}
