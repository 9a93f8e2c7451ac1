import type { ResumeChoice } from '@muster/common/checkpoints';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { followAndReport, waitAndReport } from '../jobs/attend.ts';
import { jobIdOf, jobReferenceHelp } from '../jobs/reference.ts';
import { allTold, nothingTold } from '../jobs/transitions.ts';
import { writeJson } from '../output/json.ts';
import { startProgress } from '../output/progress.ts';
import { type Session, submitPatienceMs, withSession } from '../session.ts';

interface RequeueFlags extends ConnectionFlags, OutputFlags {
  readonly wait?: boolean;
  readonly follow?: boolean;
  readonly from?: ResumeChoice;
}

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    sub.option('--wait', 'wait until it has ended; exit code 0 if it succeeded, 1 if not');
    sub.option('--follow', 'show its output until it has ended; exit code as with --wait');
    sub.option(
      '--from <step>',
      'resume from its newest good checkpoint at or before this step, or "start" from scratch; default: latest checkpoint',
      resumeChoice,
    );
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nA running job is stopped and starts again under the same id. An ended one is submitted again as a new job, which ' +
        'resumes from its checkpoints: muster checkpoints JOB lists them.',
    );
  },
  run: requeueJob,
};

function resumeChoice(typed: string): ResumeChoice {
  if (typed === 'start') return { kind: 'start' };
  if (/^\d{1,15}$/.test(typed)) return { kind: 'step', step: Number(typed) };
  throw usageError(`--from takes the step of a checkpoint, such as 500, or start; got "${typed}"`);
}

function requeueJob(context: Context, reference: string, flags: RequeueFlags): Promise<ExitCode> {
  const { io, environment } = context;
  if (flags.follow === true && flags.output === 'json')
    throw usageError('--follow shows the output of the job; with -o json, use --wait');
  return withSession(context, flags, async (session) => {
    // Sent again, a name might mean the job that the first call has made.
    const jobId = await jobIdOf(session.api, reference);
    const answer = await send(session, jobId, flags.from ?? { kind: 'newest' }, context);
    if (flags.output === 'json') {
      await writeJson(io.stdout, answer);
    } else {
      // With --follow stdout holds the output of the job, to the byte.
      await (flags.follow === true ? io.stderr : io.stdout).write(`${answer.jobId}\n`);
      const what = answer.newJob ? 'submitted again as a new job' : 'back in the queue';
      await io.stderr.write(`${what}; see it with: ${environment.programName} job ${answer.jobId}\n`);
    }
    if (flags.wait !== true && flags.follow !== true) return exitCodes.ok;
    // The attempts before are known to whoever runs the job again.
    const told = answer.newJob ? nothingTold : allTold(await session.api.getJob(answer.jobId));
    const report = flags.follow === true ? followAndReport : waitAndReport;
    const { job, exitCode } = await report(context, session, answer.jobId, told);
    if (flags.output === 'json' && job !== null) await writeJson(io.stdout, job);
    return exitCode;
  });
}

/** Tried again while the coordinator is away: the request id keeps that from stopping the job twice. */
async function send(
  session: Session,
  jobId: string,
  from: ResumeChoice,
  { io, clock, newRequestId }: Context,
) {
  const requestId = newRequestId();
  const progress = startProgress(io.stderr, clock);
  try {
    return await session.retrying((api) => api.requeueJob(jobId, requestId, from), {
      patienceMs: submitPatienceMs,
      onAway: ({ message }) => progress.show(`${message}; trying again`),
    });
  } finally {
    progress.end();
  }
}
