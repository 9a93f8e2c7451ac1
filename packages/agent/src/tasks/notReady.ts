import type { Cause } from '@muster/common/views';

/** This node cannot run the task, and a repetition would not help. */
export class NotReady extends Error {
  override readonly name = 'NotReady';
  readonly kind: Cause['kind'];

  constructor(kind: Cause['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

export function kindOfFileError(error: unknown): Cause['kind'] {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : 'unknown';
}
