/** `{array_index}` in what the jobs of an array share, filled in for one of them. Pure. */
import type { JobSpec } from './types.ts';

export const indexPlaceholder = '{array_index}';

/** In a name, a path, or any other text. */
export function fillArrayIndex(text: string, index: number): string {
  return text.replaceAll(indexPlaceholder, String(index));
}

/** Specs are immutable and shared by all jobs of an array: each is looked through once. */
const alone = new WeakMap<JobSpec, { readonly spec: JobSpec; readonly isUsed: boolean }>();

/**
 * The spec of one job of an array: it makes no array itself, and its name, command, arguments, environment and directories
 * have its index. A parameter that the user has called `array_index` keeps command and arguments to itself.
 */
export function memberSpec(shared: JobSpec, index: number): JobSpec {
  let known = alone.get(shared);
  if (known === undefined) {
    const spec: JobSpec = { ...shared, array: null };
    known = { spec, isUsed: JSON.stringify(filled(spec, 0)) !== JSON.stringify(spec) };
    alone.set(shared, known);
  }
  return known.isUsed ? filled(known.spec, index) : known.spec;
}

function filled(spec: JobSpec, index: number): JobSpec {
  const fill = (text: string) => fillArrayIndex(text, index);
  const fillOrNull = (text: string | null) => (text === null ? null : fill(text));
  const isOwnParam = Object.hasOwn(spec.params, 'array_index');
  return {
    ...spec,
    name: fill(spec.name),
    command: isOwnParam ? spec.command : spec.command.map(fill),
    args: isOwnParam ? spec.args : spec.args.map(fill),
    env: Object.fromEntries(Object.entries(spec.env).map(([name, value]) => [name, fill(value)])),
    workdir: fillOrNull(spec.workdir),
    volumes: spec.volumes.map((volume) => ({
      ...volume,
      source: fill(volume.source),
      target: fill(volume.target),
    })),
    checkpoint: { ...spec.checkpoint, dir: fillOrNull(spec.checkpoint.dir) },
  };
}
