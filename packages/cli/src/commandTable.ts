import type { CommandEntry } from './context.ts';

/** In the order of the help. Each `import` is a part of the bundle that only its command loads. */
export const commandTable: readonly CommandEntry[] = [
  entry('Start:', 'up', 'start a coordinator and agents on this machine', () => import('./commands/up.ts')),
  entry('Start:', 'down', 'stop what `muster up` has started', () => import('./commands/down.ts')),
  entry('Start:', 'coordinator', 'run a coordinator', () => import('./commands/coordinator.ts')),
  entry('Start:', 'agent', 'run the agent of one node', () => import('./commands/agent.ts')),
  {
    ...entry(
      'Jobs:',
      'submit',
      'submit a job: a file, or a command after --',
      () => import('./commands/submit.ts'),
    ),
    takesCommandLine: true,
  },
  entry('Jobs:', 'jobs', 'list jobs, newest first', () => import('./commands/jobs.ts')),
  entry('Jobs:', 'job', 'show everything about one job', () => import('./commands/job.ts')),
  entry('Jobs:', 'logs', 'show or follow the output of a job or array', () => import('./commands/logs.ts')),
  entry('Jobs:', 'metrics', 'show training and GPU metrics over time', () => import('./commands/metrics.ts')),
  entry('Jobs:', 'checkpoints', 'show the checkpoints of a job', () => import('./commands/checkpoints.ts')),
  entry('Jobs:', 'explain', 'explain why a job waits or why it ended', () => import('./commands/explain.ts')),
  entry(
    'Jobs:',
    'diagnose',
    'find the root cause of a failure in a log or a job',
    () => import('./commands/diagnose.ts'),
  ),
  entry('Jobs:', 'stop', 'stop jobs', () => import('./commands/stop.ts')),
  entry('Jobs:', 'extend', 'give a job more time', () => import('./commands/extend.ts')),
  entry(
    'Jobs:',
    'requeue',
    'put a job, or the failed jobs of an array, back into the queue',
    () => import('./commands/requeue.ts'),
  ),
  entry(
    'Jobs:',
    'pipeline',
    'run steps that hand on files to each other',
    () => import('./commands/pipeline.ts'),
  ),
  entry(
    'Jobs:',
    'lineage',
    'show what an artifact was made from, and what has used it',
    () => import('./commands/lineage.ts'),
  ),
  entry('Jobs:', 'sweep', 'search for good parameters', () => import('./commands/sweep.ts')),
  entry('Jobs:', 'automl', 'find the best model for a table', () => import('./commands/automl.ts')),
  entry(
    'Jobs:',
    'advise',
    'choose a strategy and GPUs for a training, with memory, time and cost',
    () => import('./commands/advise.ts'),
  ),
  entry(
    'Jobs:',
    'checkpoint',
    'verify checkpoints on this machine',
    () => import('./commands/checkpoint.ts'),
  ),
  entry('Cluster:', 'nodes', 'list nodes with their GPUs', () => import('./commands/nodes.ts')),
  entry('Cluster:', 'node', 'show everything about one node', () => import('./commands/node.ts')),
  entry('Cluster:', 'top', 'watch every node and GPU live', () => import('./commands/top.ts')),
  entry('Cluster:', 'alert', 'set, list and silence alerts', () => import('./commands/alert.ts')),
  entry('Cluster:', 'events', 'show or follow what happens', () => import('./commands/events.ts')),
  entry('Cluster:', 'token', 'create, list and revoke tokens', () => import('./commands/token.ts')),
  entry('Cluster:', 'user', 'add, list and remove users', () => import('./commands/user.ts')),
  entry(
    'Cluster:',
    'project',
    'list projects; make them private or open',
    () => import('./commands/project.ts'),
  ),
  entry(
    'Cluster:',
    'secret',
    'store, list and remove secrets of projects',
    () => import('./commands/secret.ts'),
  ),
  entry(
    'Cluster:',
    'maintenance',
    'extend leases before an outage of the coordinator or network',
    () => import('./commands/maintenance.ts'),
  ),
  entry(
    'Cluster:',
    'backup',
    'copy the store and the key files of the running coordinator',
    () => import('./commands/backup.ts'),
  ),
  entry(
    'Cluster:',
    'restore',
    'put a backup into the data directory of a coordinator',
    () => import('./commands/restore.ts'),
  ),
  entry(
    'Cluster:',
    'store',
    'check the store of the coordinator; continue after damage or a restore',
    () => import('./commands/store.ts'),
  ),
  entry('This program:', 'mcp', 'offer the API as tools to an AI agent', () => import('./commands/mcp.ts')),
  entry('This program:', 'login', 'log in to a coordinator', () => import('./commands/login.ts')),
  entry(
    'This program:',
    'context',
    'choose between coordinators that you have logged in to',
    () => import('./commands/context.ts'),
  ),
  entry(
    'This program:',
    'install',
    'install the services of a role on this machine',
    () => import('./commands/install.ts'),
  ),
  entry(
    'This program:',
    'uninstall',
    'remove the services from this machine',
    () => import('./commands/uninstall.ts'),
  ),
  entry(
    'This program:',
    'upgrade',
    'upgrade the services of this machine to another release',
    () => import('./commands/upgrade.ts'),
  ),
  entry(
    'This program:',
    'doctor',
    'examine this machine; report problems and fixes',
    () => import('./commands/doctor.ts'),
  ),
  entry(
    'This program:',
    'completion',
    'print a shell completion script',
    () => import('./commands/completion.ts'),
  ),
];

function entry(
  group: CommandEntry['group'],
  name: string,
  summary: string,
  load: CommandEntry['load'],
): CommandEntry {
  return { group, name, summary, load };
}
