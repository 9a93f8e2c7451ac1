/** What `muster up` says. Pure. */
import type { JobView, NodeView } from '@muster/common/views';
import type { Context } from '../context.ts';
import { nameOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { count } from '../output/text.ts';
import { durationText } from '../output/times.ts';

/** Jobs that are named when it stops. */
const namedMax = 5;

export interface Welcome {
  /** Every node the coordinator knows. */
  readonly nodes: readonly NodeView[];
  /** The nodes of this call. */
  readonly names: readonly string[];
  readonly address: string;
  /** `host:port`; null: no page for Prometheus. */
  readonly httpListen: string | null;
  /** Of the HTTP API; null: it is not served. */
  readonly apiUrl: string | null;
  readonly dataDir: string;
  /** Where its output goes, in the background. null: to this terminal. */
  readonly logPath: string | null;
  readonly context: Context;
}

export function welcomeText({
  nodes,
  names,
  address,
  httpListen,
  apiUrl,
  dataDir,
  logPath,
  context,
}: Welcome): string {
  const { environment, io } = context;
  const { bold, dim, yellow } = coloursFor(io.stdout, environment);
  const isOurs = ({ name }: NodeView) => names.includes(name);
  const online = nodes.filter((node) => isOurs(node) && node.state === 'online');
  const late = names.filter((name) => !online.some((node) => node.name === name));
  const others = nodes.filter((node) => !isOurs(node) && node.state === 'silent');
  const examples = [
    ['nodes', 'nodes and their GPUs'],
    ['submit --follow -- echo hello', 'run a command and stream its output'],
    ['jobs', 'running, queued and finished jobs'],
    ['top', 'live view of nodes and GPUs'],
  ] as const;
  const widest = Math.max(...examples.map(([words]) => words.length));
  const lines = [
    `${bold('Muster is up')} at ${address}: ${count(online.length, 'node')}, ${gpusText(online)}`,
    ...late.map((name) => yellow(`${name} is not online yet; its log: ${dataDir}/agents/${name}.log`)),
    ...(others.length === 0
      ? []
      : [`Nodes of earlier runs, not started now: ${others.map(({ name }) => name).join(', ')}`]),
    ...(environment.uid === 0
      ? [
          'Jobs without an image run as root, because root has started this; started by a user, they run as that user.',
        ]
      : []),
    '',
    ...examples.map(([words, what]) => `  ${environment.programName} ${words.padEnd(widest)}  ${dim(what)}`),
    '',
    ...(httpListen === null ? [] : [dim(`For Prometheus: http://${httpListen}/metrics`)]),
    ...(apiUrl === null ? [] : [dim(`HTTP API: ${apiUrl}/api/v1/cluster`)]),
    dim(`Data and logs are in ${dataDir}.`),
    ...(logPath === null
      ? [
          'Ctrl-C, or closing this terminal, stops Muster; running jobs keep running (with a lease: until it ends).',
          `In the background instead: ${environment.programName} up --detach`,
        ]
      : [
          `Muster runs in the background; closing this terminal does not end it. Its log: ${logPath}`,
          `Stop it: ${environment.programName} down   (running jobs keep running; with a lease: until it ends)`,
        ]),
  ];
  return `${lines.join('\n')}\n`;
}

function gpusText(nodes: readonly NodeView[]): string {
  const gpus = nodes.flatMap(({ inventory }) => inventory.gpus);
  if (gpus.length === 0) return 'no GPUs (--gpus K simulates K on each node)';
  return gpus.every(({ simulated }) => simulated)
    ? count(gpus.length, 'simulated GPU')
    : count(gpus.length, 'GPU');
}

/** What Ctrl-C, SIGTERM or the end of the terminal does. @param active the jobs that hold nodes now; null: unknown */
export function goodbyeText(active: readonly JobView[] | null, programName: string): string {
  return textOf('Stopping.', active, programName);
}

/** @param active the jobs that held nodes when it was stopped; null: unknown */
export function downText(active: readonly JobView[] | null, programName: string): string {
  return textOf('Muster is down.', active, programName);
}

function textOf(done: string, active: readonly JobView[] | null, programName: string): string {
  const next = `The next \`${programName} up\` reattaches to`;
  if (active === null)
    return `${done} Running jobs keep running, those with a lease until it ends. ${next} them.`;
  if (active.length === 0) return `${done} No job is running.`;
  const named = active.slice(0, namedMax).map((job) => `  ${job.id}  ${nameOf(job)}${leaseText(job)}`);
  const more = active.length > named.length ? [`  … and ${active.length - named.length} more`] : [];
  return [
    `${done} ${count(active.length, 'job keeps', 'jobs keep')} running:`,
    ...named,
    ...more,
    `${next} ${active.length === 1 ? 'it' : 'them'}; \`${programName} stop ID\` then ends one.`,
  ].join('\n');
}

/** Of one with a lease: how long it keeps running without the coordinator. */
function leaseText({ attempts, spec }: JobView): string {
  const leaseMs = attempts.at(-1)?.leaseMs ?? null;
  if (leaseMs === null) return '';
  const what = spec['on_lease_expiry'] === 'kill' ? 'is killed' : 'pauses';
  return `  (${what} ${durationText(leaseMs)} after Muster has stopped, unless it is up again)`;
}
