import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs, type OutputFlags, withOutput } from '../flags.ts';
import { writeJson } from '../output/json.ts';
import { durationText } from '../output/times.ts';
import { withSession } from '../session.ts';

interface DrainFlags extends ConnectionFlags, OutputFlags {
  readonly deadline?: number;
  readonly reason?: string;
}

type UndrainFlags = ConnectionFlags & OutputFlags;

const weekMs = 7 * 24 * 60 * 60_000;

export const nodeDrain: Subcommand = {
  name: 'drain',
  summary: 'give a node no new work; with a deadline its jobs save, stop and go on elsewhere before it',
  define(sub) {
    sub
      .argument('<node>', 'its name')
      .option(
        '--deadline <duration>',
        'its jobs have to be gone in so long, such as 10m or 0; default: they run on until they end',
        durationMs('--deadline', 0, weekMs),
      )
      .option('--reason <text>', 'shown wherever the drain is');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nThe same road as a preemption: the stop signal, stop_grace to save, back into the queue with its place. ' +
        '`muster node undrain` takes it back.',
    );
  },
  run: drain,
};

export const nodeUndrain: Subcommand = {
  name: 'undrain',
  summary: 'let a drained node take work again',
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
  },
  run: undrain,
};

async function drain(context: Context, name: string, flags: DrainFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const { deadline = null, reason = '' } = flags;
  const node = await withSession(context, flags, ({ api }) => api.drainNode(name, reason, deadline));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const running = new Set(node.gpuUses.map(({ jobId }) => jobId)).size;
  const jobs =
    running === 0 ? 'no GPU job is on it' : `${running} GPU ${running === 1 ? 'job is' : 'jobs are'} on it`;
  const then =
    deadline === null
      ? 'and runs on until it ends'
      : `and has ${durationText(deadline)} to save and go elsewhere`;
  await io.stdout.write(
    `${node.name} gets no new work; ${jobs}${running === 0 ? '' : ` ${then}`}. ` +
      `Take it back with: ${environment.programName} node undrain ${node.name}\n`,
  );
  return exitCodes.ok;
}

async function undrain(context: Context, name: string, flags: UndrainFlags): Promise<ExitCode> {
  const { io } = context;
  const node = await withSession(context, flags, ({ api }) => api.undrainNode(name));
  if (flags.output === 'json') {
    await writeJson(io.stdout, node);
    return exitCodes.ok;
  }
  const but = node.drained ? ', but its conditions still keep work from it' : '';
  await io.stdout.write(`${node.name} is not drained any more${but}.\n`);
  return exitCodes.ok;
}
