import type { NodeTask, NodeView } from '@muster/common/views';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs, type OutputFlags, withOutput } from '../flags.ts';
import type { NodeOptions } from '../nodes/nodeText.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { type Column, formatTable } from '../output/table.ts';
import { count } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

interface DrainFlags extends ConnectionFlags, OutputFlags {
  readonly deadline?: number;
  readonly reason?: string;
}

type UndrainFlags = ConnectionFlags & OutputFlags;

/** What is so near is not counted down. */
const soonMs = 1_000;

const weekMs = 7 * 24 * 60 * 60_000;

export const nodeDrain: Subcommand = {
  name: 'drain',
  summary: 'give no new tasks to a node; with a deadline its jobs save, stop and are rescheduled before it',
  define(sub) {
    sub
      .argument('<node>', 'its name')
      .option(
        '--deadline <duration>',
        'stop its jobs within this time, such as 10m or 0; default: wait until they end',
        durationMs('--deadline', 0, weekMs),
      )
      .option('--reason <text>', 'reason, shown with the drain');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nJobs are stopped as by a preemption: the stop signal, stop_grace to save, then back to their queue position. ' +
        '`muster node undrain` undoes it.',
    );
  },
  run: drain,
};

export const nodeUndrain: Subcommand = {
  name: 'undrain',
  summary: 'give new tasks to a drained node again',
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
  },
  run: undrain,
};

async function drain(context: Context, name: string, flags: DrainFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const { deadline = null, reason = '' } = flags;
  const node = await withSession(context, flags, ({ api }) => api.drainNode(name, reason, deadline));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const options = { width: io.stdout.columns(), colours: coloursFor(io.stdout, environment) };
  await io.stdout.write(drainedText(node, clock.wallMs(), options));
  await io.stderr.write(`Undo: ${environment.programName} node undrain ${node.name}\n`);
  return exitCodes.ok;
}

/** Every job on the node, with and without GPUs, and when it is stopped. */
function drainedText({ name, tasks }: NodeView, nowMs: number, options: NodeOptions): string {
  if (tasks.length === 0) return `${name} is drained; no jobs running.\n`;
  const stopped = tasks.filter(({ stopAtMs, stopping }) => stopAtMs !== null || stopping).length;
  const others = tasks.length - stopped;
  const what = [
    ...(stopped > 0 ? [`${count(stopped, 'job')} will be stopped`] : []),
    ...(others > 0
      ? [`${count(others, 'job keeps', 'jobs keep')} running until ${others === 1 ? 'it ends' : 'they end'}`]
      : []),
  ];
  const columns: readonly Column<NodeTask>[] = [
    { header: 'JOB', cell: ({ task }) => task.jobId },
    { header: 'NAME', cell: (each) => each.name, narrow: { cutTo: 12 } },
    { header: 'GPUS', cell: ({ gpus }) => String(gpus), align: 'right' },
    { header: 'STOPS', cell: (each) => stopText(each, nowMs) },
  ];
  return `${name} is drained: it gets no new work. ${what.join(', ')}.\n${formatTable(tasks, columns, options)}`;
}

function stopText({ stopAtMs, stopping }: NodeTask, nowMs: number): string {
  if (stopping) return 'is being stopped';
  if (stopAtMs === null) return 'when it ends';
  return stopAtMs - nowMs < soonMs ? 'now' : `in ${durationText(stopAtMs - nowMs)}`;
}

async function undrain(context: Context, name: string, flags: UndrainFlags): Promise<ExitCode> {
  const { io } = context;
  const node = await withSession(context, flags, ({ api }) => api.undrainNode(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const but = node.drained ? ', but its conditions still prevent new work' : '';
  await io.stdout.write(`${node.name} is no longer drained${but}.\n`);
  return exitCodes.ok;
}
