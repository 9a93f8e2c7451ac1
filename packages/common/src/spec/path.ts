/** Where in a spec: keys and list positions from the outside in. */
export type SpecPath = readonly (string | number)[];

/** A key is written out in messages up to this length; a hostile one would fill the screen. */
const keyLengthMax = 80;

/** `['resources', 'gpus']` → `resources.gpus`, `['env', '1 X']` → `env["1 X"]`, `['volumes', 0]` → `volumes[0]`. */
export function formatPath(path: SpecPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    if (!/^[\w-]{1,80}$/.test(part)) return `${text}[${quote(part, keyLengthMax)}]`;
    return text === '' ? part : `${text}.${part}`;
  }, '');
}

/** Text in double quotes, safe for a terminal: control characters escaped, cut to `lengthMax` characters. */
export function quote(text: string, lengthMax: number): string {
  const shown = text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
  return escapeControls(JSON.stringify(shown));
}

/** Escape sequences in a spec must not reach the terminal of the reader of the error. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A copy in which the value at a path is another one; undefined removes it. What is no mapping where one belongs stays as it is,
 * for the checks to report at its place.
 */
export function withValueAt(root: unknown, [key, ...inner]: SpecPath, value: unknown): unknown {
  if (key === undefined) return value;
  const mapping = root === undefined ? {} : root;
  if (!isMapping(mapping)) return root;
  const changed = withValueAt(Object.hasOwn(mapping, key) ? mapping[key] : undefined, inner, value);
  if (changed !== undefined) return { ...mapping, [key]: changed };
  return Object.fromEntries(Object.entries(mapping).filter(([other]) => other !== key));
}

/** The value at a path; undefined where there is none. Inherited properties do not count. */
export function valueAt(root: unknown, path: SpecPath): unknown {
  return path.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return typeof part === 'number' ? value[part] : undefined;
    return isMapping(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }, root);
}
