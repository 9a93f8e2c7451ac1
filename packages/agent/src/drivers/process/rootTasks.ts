/**
 * Bare tasks run as whoever their agent runs as. As root they are root on the node: they can read what the agent keeps, leave
 * their control group, command the guard, and rewrite the machine. A node's owner has to want that.
 */

export const rootTasksWarning =
  'bare tasks run as root on this node, so whoever may submit a job is root here: `--root-tasks refuse` lets only ' +
  'containers run, `--root-tasks allow` accepts that';

/** @returns why bare tasks are refused; null: they are not */
export function rootTasksRefusal(rootTasks: 'allow' | 'refuse' | null, uid: number): string | null {
  if (rootTasks !== 'refuse' || uid !== 0) return null;
  return (
    'this node runs no bare tasks, because they would be root on it: give the job an image, or let the node run them ' +
    "(`--root-tasks allow` in its agent's MUSTER_FLAGS)"
  );
}
