/** What `muster up` says. Pure. */
import type { JobView, NodeView } from '@muster/common/views';
import type { Context } from '../context.ts';
import { nameOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { count } from '../output/text.ts';

export interface Welcome {
  /** Every node the coordinator knows. */
  readonly nodes: readonly NodeView[];
  /** The nodes of this call. */
  readonly names: readonly string[];
  readonly address: string;
  /** `host:port`; null: no page for Prometheus. */
  readonly httpListen: string | null;
  readonly dataDir: string;
  readonly context: Context;
}

export function welcomeText({ nodes, names, address, httpListen, dataDir, context }: Welcome): string {
  const { environment, io } = context;
  const { bold, dim, yellow } = coloursFor(io.stdout, environment);
  const isOurs = ({ name }: NodeView) => names.includes(name);
  const online = nodes.filter((node) => isOurs(node) && node.state === 'online');
  const late = names.filter((name) => !online.some((node) => node.name === name));
  const others = nodes.filter((node) => !isOurs(node) && node.state === 'silent');
  const examples = [
    ['nodes', 'what there is to run on'],
    ['submit --follow -- echo hello', 'run something and watch it'],
    ['jobs', 'what runs, waits and has ended'],
    ['top', 'what the GPUs do right now'],
  ] as const;
  const widest = Math.max(...examples.map(([words]) => words.length));
  const lines = [
    `${bold('Muster is up')} at ${address}: ${count(online.length, 'node')}, ${gpusText(online)}`,
    ...late.map((name) => yellow(`${name} is not online yet; its log: ${dataDir}/agents/${name}.log`)),
    ...(others.length === 0
      ? []
      : [`Known from earlier, not started now: ${others.map(({ name }) => name).join(', ')}`]),
    '',
    ...examples.map(([words, what]) => `  ${environment.programName} ${words.padEnd(widest)}  ${dim(what)}`),
    '',
    ...(httpListen === null ? [] : [dim(`For Prometheus: http://${httpListen}/metrics`)]),
    dim(`Data and logs are in ${dataDir}. Ctrl-C stops Muster; jobs go on.`),
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

/** @param active the jobs that run now; null: unknown */
export function goodbyeText(active: readonly JobView[] | null, programName: string): string {
  if (active === null) return 'Stopping. Jobs that run go on; the next `up` finds them again.';
  if (active.length === 0) return 'Stopping.';
  const named = active.slice(0, 5).map((job) => `  ${job.id}  ${nameOf(job)}`);
  const more = active.length > named.length ? [`  … and ${active.length - named.length} more`] : [];
  return [
    `Stopping. ${count(active.length, 'job')} ${active.length === 1 ? 'goes' : 'go'} on running:`,
    ...named,
    ...more,
    `The next \`${programName} up\` finds them again; \`${programName} stop ID\` then ends one.`,
  ].join('\n');
}
