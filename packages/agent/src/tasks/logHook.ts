import type { Logger } from '@muster/common/log';
import type { TaskExit } from '../taskFacts/execution.ts';
import type { TaskHook } from './hooks.ts';

/** Says in the log of the agent that a task runs, and how it ended; the logger adds where its training was. */
export function logHook({ log }: { readonly log: Logger }): TaskHook {
  const exits = new Map<string, TaskExit | null>();
  return {
    followed({ location: { key } }, how) {
      if (how === 'started') log.info({ task: key }, 'a task has started');
      else if (how === 'found') log.info({ task: key }, 'a task of an earlier agent still runs');
    },
    async conclude({ location: { key } }, { exit }) {
      exits.set(key, exit);
      return {};
    },
    // By now the rest of its output was read.
    measure({ location: { key } }) {
      const exit = exits.get(key) ?? null;
      exits.delete(key);
      const fields = { task: key, exitCode: exit?.exitCode ?? null, signal: exit?.signal ?? null };
      log.info(fields, 'a task has ended');
      return {};
    },
  };
}
