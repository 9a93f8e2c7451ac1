import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from '@muster/agent/fence/processes';
import { messageOf } from '@muster/common/errors';
import { lastDataDir } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { activeJobs, collectJobs } from '../jobs/pages.ts';
import { startProgress } from '../output/screen.ts';
import { count } from '../output/text.ts';
import { type Session, withSession } from '../session.ts';
import { readUpState, type UpState } from '../supervisor/upState.ts';
import { downText } from '../supervisor/upText.ts';

interface DownFlags {
  readonly data?: string;
  readonly stopJobs?: boolean;
}

const pollMs = 100;
/** More than agents and coordinator together take when they have to be killed. */
const goneWithinMs = 40_000;
/** Stopped in one call. */
const jobsPerCall = 1_000;

export const command: CommandModule = {
  define(sub) {
    sub
      .option('--data <dir>', 'its data directory; default: MUSTER_DATA, or that of the last `muster up`')
      .option('--stop-jobs', 'first stop all jobs, queued ones too, and wait until they have ended');
    sub.addHelpText(
      'after',
      '\nWithout --stop-jobs running jobs keep running, and the next `muster up` reattaches to them. Jobs with a lease pause ' +
        'when it ends.',
    );
  },
  run: down,
};

async function down(context: Context, flags: DownFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const named = flags.data ?? environment.dataDir;
  const dataDir =
    named === null
      ? (lastDataDir(environment) ?? environment.defaultDataDir)
      : resolve(environment.workingDir, named);
  const running = readUpState(dataDir);
  if (running === null) {
    await io.stderr.write(`No \`muster up\` is running with ${dataDir}.\n`);
    return exitCodes.ok;
  }
  const stop = abortOnStopRequest(io);
  const progress = startProgress(io.stderr, context.clock);
  try {
    const active =
      running.address === null
        ? []
        : await withSession(context, { data: dataDir }, async (session) => {
            if (flags.stopJobs === true) await stopAllJobs(session, progress, stop.signal);
            return activeJobs(session);
          });
    if (stop.signal.aborted) return exitCodes.interrupted;
    progress.show('stopping Muster');
    end(running, dataDir);
    await untilGone(running);
    progress.end();
    await io.stdout.write(`${downText(active, environment.programName)}\n`);
    return exitCodes.ok;
  } finally {
    progress.end();
    stop.dispose();
  }
}

/** Until none is left: while some are being stopped, others may start. */
async function stopAllJobs(
  { api }: Session,
  progress: { show(sentence: string): void },
  stop: AbortSignal,
): Promise<void> {
  const states = ['queued', 'starting', 'running', 'stopping'] as const;
  while (!stop.aborted) {
    const { jobs, more } = await collectJobs(api, { states, brief: true }, jobsPerCall);
    if (jobs.length === 0) return;
    const left = jobs.filter(({ state }) => state !== 'stopping').map(({ id }) => id);
    if (left.length > 0) await api.stopJobs(left, 'muster down --stop-jobs', true);
    progress.show(`stopping ${more ? `more than ${jobs.length} jobs` : count(jobs.length, 'job')}`);
    await sleep(pollMs);
  }
}

function end({ pid }: UpState, dataDir: string): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
    throw new CliError(`cannot stop the \`muster up\` of ${dataDir}, process ${pid}: ${messageOf(error)}`, {
      code: 'permission_denied',
      cause: error,
    });
  }
}

async function untilGone(running: UpState): Promise<void> {
  for (let waitedMs = 0; isRunning(running); waitedMs += pollMs) {
    if (waitedMs >= goneWithinMs)
      throw new CliError(`process ${running.pid} of \`muster up\` has not ended`, {
        hints: [
          `Its children may be stuck; \`kill -9 ${running.pid}\` ends it, and running jobs keep running, those with a lease until it ends.`,
        ],
      });
    await sleep(pollMs);
  }
}
