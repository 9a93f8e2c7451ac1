import { defaultRetryCauses } from './causes.ts';

/** What a job gets where its spec says nothing; the schema shows these to editors, `normalize.ts` fills them in. */
export const jobSpecDefaults = {
  name: 'job',
  project: 'default',
  nodes: 1,
  topology: 'preferred',
  launcher: 'torchrun',
  prepareTimeoutMs: 600_000,
  rendezvousTimeoutMs: 120_000,
  onLeaseExpiry: 'freeze',
  nodeLoss: 'requeue',
  gpus: 0,
  priority: 50,
  preemptible: false,
  stopGraceMs: 60_000,
  /** One attempt: no retry. */
  maxAttempts: 1,
  backoffInitialMs: 2_000,
  backoffMaxMs: 60_000,
  retryOn: defaultRetryCauses,
} as const;
