import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';

export const jobReferenceHelp = 'id, unique beginning of one, name (the newest of that name), or `latest`';

/**
 * The id that a user meant. Ids and their beginnings go to the coordinator as they are: only it knows them all.
 * Names cannot look like ids, as they hold no underscore.
 */
export async function resolveJob(api: MusterApi, reference: string, context: Context): Promise<string> {
  if (reference.includes('_')) return reference;
  const filter = reference === 'latest' ? { limit: 1 } : { name: reference, limit: 1 };
  const [newest] = (await api.listJobs(filter)).jobs;
  if (newest !== undefined) return newest.id;
  const { programName } = context.environment;
  if (reference === 'latest') {
    throw new CliError('there is no job yet', {
      code: 'not_found',
      hints: [`Submit one with: ${programName} submit -- COMMAND`],
    });
  }
  throw new CliError(`no job named "${reference}"`, {
    code: 'not_found',
    hints: [`\`${programName} jobs\` lists them.`],
  });
}
