import type { TaskFailure } from '@muster/common/gangs';

/** What an agent finds of a task that ended by SIGKILL and left no reason. */
export const killed: TaskFailure = {
  source: 'exit',
  consequence: false,
  rank: null,
  message: 'ended by SIGKILL',
  kind: null,
  blame: null,
  line: null,
  atBoottimeMs: 100_000,
};
