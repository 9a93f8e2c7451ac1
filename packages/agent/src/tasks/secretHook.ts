import { MusterError, messageOf } from '@muster/common/errors';
import type { TaskRef } from '@muster/common/ids';
import type { SecretValue, TaskSecrets } from '../secrets/taskSecrets.ts';
import type { AssignedTask, TaskHook } from './hooks.ts';
import { kindOfFileError, NotReady } from './notReady.ts';

export interface SecretHookParts {
  readonly secrets: Pick<TaskSecrets, 'has' | 'keep' | 'keepOnly' | 'maskOf' | 'remove'>;
  /** Asks the coordinator for the values. @throws {MusterError} */
  readonly readSecrets: (task: TaskRef) => Promise<readonly SecretValue[]>;
}

/** What the task gets of its project's secrets. They stay until nothing of its output is left to be masked. */
export function secretHook({ secrets: kept, readSecrets }: SecretHookParts): TaskHook {
  const obtain = async ({ task, assignment: { spec }, location: { key } }: AssignedTask) => {
    if (spec.secrets.length === 0 || kept.has(key)) return;
    const values = await readSecrets(task).catch((error: unknown) => {
      const isFinal = error instanceof MusterError && finalCodes.has(error.code);
      throw isFinal ? new NotReady('unknown', error.message, { cause: error }) : error;
    });
    try {
      // That of a store is for the agent alone, and not kept.
      const own = values.filter(({ name }) => spec.secrets.some((used) => used.name === name));
      kept.keep(key, spec.secrets, own);
    } catch (error) {
      const message = `no secrets: ${messageOf(error)}`;
      throw new NotReady(kindOfFileError(error), message, { cause: error });
    }
  };
  return {
    prepare: obtain,
    starting: obtain,
    async removed({ assignment, location: { key } }) {
      if (assignment === null || assignment.spec.secrets.length > 0) await kept.remove(key);
    },
  };
}

/** Asked again, the coordinator would answer the same. */
export const finalCodes: ReadonlySet<string> = new Set([
  'not_found',
  'failed_precondition',
  'permission_denied',
]);
