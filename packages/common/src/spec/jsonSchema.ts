import * as z from 'zod';
import { jobSpecSchema } from './schema.ts';

/** JSON Schema (2020-12) of the job file, for editors and API documentation. */
export function jobSpecJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(jobSpecSchema, { target: 'draft-2020-12', io: 'input' });
  return { $schema, $id: 'urn:muster:job-spec:v1', title: 'Muster job', ...schema };
}
