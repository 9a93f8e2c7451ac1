import { MusterError } from '@muster/common/errors';
import type { StoreError } from './store.ts';

/** Refuses a command because the disk had no room for its commit. Nothing was changed, and the command may be repeated. */
export class NoSpaceError extends MusterError {
  constructor(cause: StoreError) {
    super('resource_exhausted', cause.message, { cause });
  }
}

/** True if a command was refused for what it asks. What only has to be repeated, such as after a full disk, is no refusal. */
export function isRefusal(error: unknown): error is MusterError {
  if (!(error instanceof MusterError) || error instanceof NoSpaceError) return false;
  return error.code !== 'unavailable' && error.code !== 'internal';
}
