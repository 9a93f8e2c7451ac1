import { type JobStateKind, jobStates } from '@muster/common/states';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { collect, type OutputFlags, wholeNumber, withOutput } from '../flags.ts';
import { formatJobs } from '../jobs/jobTable.ts';
import { collectJobs } from '../jobs/pages.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { withSession } from '../session.ts';

interface JobsFlags extends ConnectionFlags, OutputFlags {
  readonly state?: readonly string[];
  readonly array?: string;
  readonly name?: string;
  readonly limit?: number;
  readonly all?: boolean;
}

/** One screenful; more is for those who ask. */
const limitDefault = 20;

export const command: CommandModule = {
  define(sub) {
    sub
      .option('--state <state>', `only jobs in this state, may be repeated: ${jobStates.join(', ')}`, collect)
      .option('--array <array>', 'only the jobs of this array')
      .option('--name <name>', 'only jobs of this name')
      .option(
        '--limit <count>',
        `at most this many; default ${limitDefault}`,
        wholeNumber('--limit', 1, 1_000_000),
      )
      .option('-a, --all', 'every job');
    withConnection(withOutput(sub));
  },
  run: (context: Context, flags: JobsFlags) => listJobs(context, flags),
};

async function listJobs(context: Context, flags: JobsFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const states = (flags.state ?? []).flatMap((word) => word.split(',')).map(stateNamed);
  const limit = flags.all === true ? Number.POSITIVE_INFINITY : (flags.limit ?? limitDefault);
  const { jobs, more } = await withSession(context, flags, ({ api }) =>
    collectJobs(
      api,
      {
        states,
        ...(flags.array === undefined ? {} : { arrayId: flags.array }),
        ...(flags.name === undefined ? {} : { name: flags.name }),
      },
      limit,
    ),
  );
  if (flags.output === 'json') {
    await writeJson(io.stdout, { jobs, more });
    return exitCodes.ok;
  }
  if (jobs.length === 0) {
    const filtered = states.length > 0 || flags.array !== undefined || flags.name !== undefined;
    const advice = filtered ? '' : ` Submit one with: ${environment.programName} submit -- COMMAND`;
    await io.stderr.write(`No ${filtered ? 'such job' : 'job yet'}.${advice}\n`);
    return exitCodes.ok;
  }
  const colours = coloursFor(io.stdout, environment);
  await io.stdout.write(formatJobs(jobs, { width: io.stdout.columns(), colours, nowMs: clock.wallMs() }));
  if (more)
    await io.stderr.write(
      `The newest ${jobs.length}; \`${environment.programName} jobs --all\` shows every one.\n`,
    );
  return exitCodes.ok;
}

function stateNamed(word: string): JobStateKind {
  const state = jobStates.find((known) => known === word);
  if (state !== undefined) return state;
  throw usageError(`no job is ever "${word}"; --state takes ${jobStates.join(', ')}`);
}
