/**
 * Between the shape of the job file and `JobSpec`. The file shape is what `-o json` prints, what the store keeps, what travels to
 * agents, and what a user can submit again. No zod in here: the agent reads specs with `decodeJobSpec`.
 */
import { jobFields } from './fields.ts';
import { readFields, writeFields } from './kinds.ts';
import { isMapping } from './path.ts';
import type { JobResources, JobSpec, JobSpecFile } from './types.ts';

/** A checked file with defaults filled in and units fixed. @throws {TypeError} for what is no checked file */
export function normalizeJobSpec(file: Readonly<Record<string, unknown>>): JobSpec {
  return readFields(jobFields, file);
}

/** Alone for lists, where the rest of a thousand specs is not looked at. */
export function normalizeResources(resources: NonNullable<JobSpecFile['resources']>): JobResources {
  return jobFields.resources.read(resources, {});
}

/** Alone, too, for lists. */
export function normalizeLabels(labels: NonNullable<JobSpecFile['labels']>): JobSpec['labels'] {
  return jobFields.labels.read(labels, {});
}

/** The settings that a table of jobs shows. `jobSpecToFile` has them in the same shape, and costs several times as much. */
export function shownSettings({ resources, labels }: JobSpec): Pick<JobSpecFile, 'resources' | 'labels'> {
  return { resources: jobFields.resources.write(resources), labels: jobFields.labels.write(labels) };
}

/** The canonical file shape: one spec has exactly one. What is not set is omitted. */
export function jobSpecToFile(spec: JobSpec): JobSpecFile {
  return writeFields(jobFields, spec);
}

/** The canonical file shape as JSON text with sorted keys: equal specs give equal bytes. */
export function encodeJobSpec(spec: JobSpec): string {
  return JSON.stringify(jobSpecToFile(spec), (_key, value: unknown) =>
    isMapping(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

/**
 * Reads what `encodeJobSpec` wrote, without checking it again: for text from our own store or coordinator only.
 * @throws {SyntaxError | TypeError} for text that is not such a spec
 */
export function decodeJobSpec(json: string): JobSpec {
  const value: unknown = JSON.parse(json);
  if (!isMapping(value)) throw new TypeError('not a checked job spec: no mapping');
  return normalizeJobSpec(value);
}
