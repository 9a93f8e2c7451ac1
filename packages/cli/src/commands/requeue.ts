import type { ResumeChoice } from '@muster/common/checkpoints';
import { messageOf } from '@muster/common/errors';
import { formatProblems } from '@muster/common/spec/format';
import { withValueAt } from '@muster/common/spec/path';
import { encodeJobSpec } from '@muster/common/spec/serialize';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { formatArraySummary } from '../arrays/arrayText.ts';
import { waitForArrayAndReport } from '../arrays/attendArray.ts';
import { type RequeuedArray, requeueArray } from '../arrays/requeueArray.ts';
import { showArray } from '../arrays/show.ts';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { collect } from '../flags.ts';
import { rememberStopRequests } from '../io.ts';
import { followAndReport, waitAndReport } from '../jobs/attend.ts';
import { type ArrayReferent, jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { nameOf } from '../jobs/summary.ts';
import { allReported, nothingReported } from '../jobs/transitions.ts';
import { writeJson } from '../output/json.ts';
import { patiently } from '../patiently.ts';
import { type ForceFlag, type QueryFlags, requireConsent, withQuery } from '../query.ts';
import { explainingSilence, type Session, withSession } from '../session.ts';
import { parseChange, type SpecChange } from '../submit/assignments.ts';
import { refusal } from '../submit/spec.ts';

interface RequeueFlags extends QueryFlags, ForceFlag {
  readonly wait?: boolean;
  readonly follow?: boolean;
  readonly from?: ResumeChoice;
  readonly set?: readonly string[];
  readonly all?: boolean;
}

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobOrArrayHelp);
    sub.option('--wait', 'wait until it has ended; exit code 0 if it succeeded, 1 if not');
    sub.option('--follow', 'show its output until it has ended; exit code as with --wait');
    sub.option(
      '--from <step>',
      'resume from the good checkpoint of this step or name, or "start" for none; default: the newest',
      resumeChoice,
    );
    sub.option(
      '--set <key=value>',
      'change the spec, such as env.LR=3e-4 or resources.gpus=2, and continue from the checkpoints; may be repeated',
      collect,
    );
    sub.option(
      '--all',
      'of an array: also the jobs that succeeded or run; default: those that failed or were cancelled',
    );
    sub.option('--force', 'stop it without asking, if it is running');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nA running job is stopped and starts again under the same id. An ended one is submitted again as a new job, which ' +
        'resumes from its checkpoints: muster checkpoints JOB lists them.\n\n' +
        'Of an array the jobs that failed or were cancelled are requeued. Each keeps its index in the array.',
    );
  },
  run: requeueJob,
};

function resumeChoice(typed: string): ResumeChoice {
  if (typed === 'start') return { kind: 'start' };
  if (/^\d{1,15}$/.test(typed)) return { kind: 'step', step: Number(typed) };
  // A name has more to it than a word: no step is meant that was mistyped.
  if (/[./]|\w[-_=]\w/.test(typed)) return { kind: 'name', name: typed };
  throw usageError(
    `--from takes the step of a checkpoint, such as 500, its name, such as step_500.pt, or start; got "${typed}"`,
  );
}

function requeueJob(context: Context, reference: string, flags: RequeueFlags): Promise<ExitCode> {
  if (flags.follow === true && flags.output === 'json')
    throw usageError('--follow shows the output of the job; with -o json, use --wait');
  return withSession(context, flags, async (session) => {
    // Sent again, a name might mean the job that the first call has made.
    const found = await referentOf(session.api, reference);
    if (found.kind === 'array') return requeueWhole(context, session, found, flags);
    if (flags.all === true) throw usageError('--all is for arrays; this is one job');
    return requeueOne(context, session, found.id, flags);
  });
}

async function requeueWhole(
  context: Context,
  session: Session,
  array: ArrayReferent,
  flags: RequeueFlags,
): Promise<ExitCode> {
  const { set } = flags;
  const result: RequeuedArray = await requeueArray(context, session, array, {
    from: flags.from ?? { kind: 'newest' },
    all: flags.all === true,
    force: flags.force === true,
    specOf: set === undefined ? null : async (id) => changedSpec(await session.api.getJob(id), set),
  });
  const isWaiting =
    (flags.wait === true || flags.follow === true) &&
    result.refused.length === 0 &&
    result.requeued.length > 0;
  // Ctrl-C right after the id was printed leaves the jobs running, as it does later.
  const stops = rememberStopRequests(context.io);
  try {
    const { stdout } = stops.io;
    if (flags.output === 'json') await writeJson(stdout, result);
    else if (result.requeued.length > 0) await stdout.write(`${array.id}\n`);
    if (!isWaiting) return result.refused.length > 0 ? exitCodes.refused : exitCodes.ok;
    const replaced = result.requeued.filter(({ from, jobId }) => from !== jobId).map(({ from }) => from);
    const staying = { ...context, io: stops.io };
    const { exitCode } = await waitForArrayAndReport(staying, session, array, new Set(replaced));
    if (flags.output === 'json' && exitCode !== exitCodes.interrupted)
      await showArray(context, session.api, array, flags, formatArraySummary);
    return exitCode;
  } finally {
    stops.dispose();
  }
}

async function requeueOne(
  context: Context,
  session: Session,
  jobId: string,
  flags: RequeueFlags,
): Promise<ExitCode> {
  const { io, environment } = context;
  const before = await patiently(session, context, (api) => api.getJob(jobId));
  const specJson = flags.set === undefined ? null : await changedSpec(before, flags.set);
  const isAtWork = before.state === 'starting' || before.state === 'running';
  let force = flags.force === true;
  if (isAtWork && !force && flags.set === undefined) {
    await requireConsent(
      context,
      `${nameOf(before)} (${jobId}) is ${before.state}; requeueing it stops attempt ${before.attempts.at(-1)?.number ?? 1}`,
      `${environment.programName} requeue ${jobId} --force`,
    );
    force = true;
  }
  const from = flags.from ?? { kind: 'newest' };
  // The request id keeps a second call from stopping the job twice.
  const requestId = context.newRequestId();
  const answer = await explainingSilence(`job ${jobId}`, context, () =>
    patiently(session, context, (api) => api.requeueJob(jobId, requestId, from, specJson, force)),
  );
  // Ctrl-C right after the id was printed leaves the job running, as it does later.
  const stops = rememberStopRequests(io);
  try {
    const staying = { ...context, io: stops.io };
    await printAnswer(answer, flags, staying);
    if (flags.wait !== true && flags.follow !== true) return exitCodes.ok;
    // The attempts before are known to anyone who runs the job again.
    const reported = answer.newJob ? nothingReported : allReported(await session.api.getJob(answer.jobId));
    const report = flags.follow === true ? followAndReport : waitAndReport;
    const { job, exitCode } = await report(staying, session, answer.jobId, reported);
    if (flags.output === 'json' && job !== null) await writeJson(io.stdout, job);
    return exitCode;
  } finally {
    stops.dispose();
  }
}

async function printAnswer(
  answer: Awaited<ReturnType<MusterApi['requeueJob']>>,
  flags: RequeueFlags,
  { io, environment }: Context,
): Promise<void> {
  if (flags.output === 'json') return writeJson(io.stdout, answer);
  // With --follow stdout holds the output of the job, to the byte.
  await (flags.follow === true ? io.stderr : io.stdout).write(`${answer.jobId}\n`);
  const what = answer.newJob ? 'submitted again as a new job' : 'back in the queue';
  await io.stderr.write(`${what}; see it with: ${environment.programName} job ${answer.jobId}\n`);
}

/**
 * The spec of a job with changes in it.
 * @throws {CliError} with every problem that it then has, each at the flag that it comes from
 */
async function changedSpec({ spec }: JobView, typed: readonly string[]): Promise<string> {
  const changes = typed.map((each) => {
    const change = changeOf(each);
    if (change === null) throw usageError(`--set takes key=value, such as env.LR=3e-4; got "${each}"`);
    return change;
  });
  const { validateJobSpec } = await import('@muster/common/spec/validate');
  const changed = changes.reduce<unknown>((file, { path, value }) => withValueAt(file, path, value), spec);
  const result = validateJobSpec(changed);
  if (result.ok) return encodeJobSpec(result.spec);
  const problems = result.problems.map((problem) => {
    const index = changes.findLastIndex(({ path }) => `${problem.path}.`.startsWith(`${path.join('.')}.`));
    return index < 0 ? problem : { ...problem, flag: `--set ${changes[index]?.path.join('.')}` };
  });
  throw refusal(problems, formatProblems(problems, null));
}

function changeOf(typed: string): SpecChange | null {
  try {
    return parseChange(typed);
  } catch (error) {
    throw usageError(
      `--set ${typed}: the value is not JSON (${messageOf(error)})`,
      `Put double quotes around each text: --set 'command=["torchrun", "train.py", "--lr=3e-4"]'`,
      'Or give a command to the shell as one text: --set command="torchrun train.py --lr=3e-4"',
    );
  }
}
