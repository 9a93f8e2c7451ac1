import { MusterError } from '@muster/common/errors';
import type { StoreError } from './store.ts';

/** Refuses a command because the disk had no room for its commit. Nothing was changed, and the command may be repeated. */
export class NoSpaceError extends MusterError {
  constructor(cause: StoreError) {
    super('resource_exhausted', cause.message, { cause });
  }
}
