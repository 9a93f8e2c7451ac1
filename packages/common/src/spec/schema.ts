/** The checks of job files, made of the table. They change nothing; `serialize.ts` turns what passed into a `JobSpec`. */
import * as z from 'zod';
import { jobFields } from './fields.ts';
import { checkFields } from './kinds.ts';

export const jobSpecSchema = checkFields(
  z,
  jobFields,
  'a mapping of job settings, such as command: [torchrun, train.py]',
).describe('A Muster job.');

/** JSON Schema (2020-12) of the job file, for editors and API documentation. */
export function jobSpecJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(jobSpecSchema, { target: 'draft-2020-12', io: 'input' });
  return { $schema, $id: 'urn:muster:job-spec:v1', title: 'Muster job', ...schema };
}
