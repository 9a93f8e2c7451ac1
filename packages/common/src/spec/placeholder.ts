/** `{name}`, or `{name:words}`: what parameters stand for in command and args. */
export const placeholder = /\{([A-Za-z_][\w-]*)(?::([^{}]*))?\}/g;

/** The parameters whose values texts have: `{name}` without words. */
export function namedParameters(texts: readonly string[]): ReadonlySet<string> {
  const found = [...texts.join(' ').matchAll(placeholder)];
  return new Set(found.filter(([, , words]) => words === undefined).map(([, name = '']) => name));
}

/** Whether a retry with a smaller batch scales the parameter of that name. */
export function isBatchName(name: string): boolean {
  return /(?:^|_)(?:batch_size|batch|bs)$/.test(name);
}
