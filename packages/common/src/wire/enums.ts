/** Enumerations and words of the wire as string unions. */

/** `'running'` → `'TASK_STATE_RUNNING'`, and back. Unknown values on reading become the fallback. */
export function enumMapping<K extends string, P extends string>(prefix: P, kinds: readonly K[], fallback: K) {
  const toKind = new Map<string, K>(kinds.map((kind) => [`${prefix}${kind.toUpperCase()}`, kind]));
  return {
    toWire: (kind: K) => `${prefix}${kind.toUpperCase()}` as `${P}${Uppercase<K>}`,
    fromWire: (name: string): K => toKind.get(name) ?? fallback,
  };
}

/** @returns the fallback for a word that only a newer peer knows */
export function known<K extends string>(kinds: readonly K[], text: string, fallback: K): K {
  return kinds.find((kind) => kind === text) ?? fallback;
}
