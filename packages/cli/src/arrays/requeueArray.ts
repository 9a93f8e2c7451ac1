/** `muster requeue` of a whole array. */
import type { ResumeChoice } from '@muster/common/checkpoints';
import { MusterError, messageOf } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import type { Context } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ArrayReferent } from '../jobs/reference.ts';
import { startProgress } from '../output/screen.ts';
import { count, printable } from '../output/text.ts';
import { requireConsent } from '../query.ts';
import { explainingSilence, type Session, submitPatienceMs } from '../session.ts';
import { countsOf, countsText } from './arraySummary.ts';
import { inParallel } from './inParallel.ts';
import type { Member } from './members.ts';
import { membersOf } from './show.ts';

export interface ArrayRequeue {
  readonly from: ResumeChoice;
  /** Also jobs that succeeded or run. */
  readonly all: boolean;
  readonly force: boolean;
  /** The spec to run a job with; empty: its own. null: no job is changed. */
  readonly specOf: ((jobId: string) => Promise<string>) | null;
}

/** What `-o json` prints. */
export interface RequeuedArray {
  readonly arrayId: string;
  /** `from` is the job before: the same one where it had not ended. */
  readonly requeued: readonly { readonly index: number; readonly from: string; readonly jobId: string }[];
  readonly refused: readonly { readonly index: number; readonly jobId: string; readonly message: string }[];
}

/** One commit of the coordinator carries several; more at once would only wait there. */
const callsAtOnce = 16;

/**
 * Requeues the jobs that failed or were cancelled, or all. Repeating it requeues no job twice: those are queued then.
 * @returns what became of each; a job that is refused keeps none of the others from being requeued
 * @throws {CliError} where jobs run and nobody agrees to end them
 */
export async function requeueArray(
  context: Context,
  session: Session,
  array: ArrayReferent,
  choice: ArrayRequeue,
): Promise<RequeuedArray> {
  const jobs = await membersOf(context, session.api, array);
  const chosen = jobs.members.filter((member) => isChosen(member, choice.all));
  await requireLeave(context, array, chosen, choice);
  const { io, clock, environment } = context;
  if (chosen.length === 0) {
    const states = countsText(countsOf(jobs));
    await io.stderr.write(`Nothing to requeue: no job of ${printable(array.name)} has failed (${states}).\n`);
    return { arrayId: array.id, requeued: [], refused: [] };
  }
  const requeued: { index: number; from: string; jobId: string }[] = [];
  const refused: { index: number; jobId: string; message: string }[] = [];
  const progress = startProgress(io.stderr, clock);
  try {
    await inParallel(chosen, callsAtOnce, async ({ index, id, state }) => {
      const requestId = context.newRequestId();
      // Leave was given for what runs; what has ended is stopped by nobody.
      const force = !isTerminal(state);
      try {
        const specJson = choice.specOf === null ? null : await choice.specOf(id);
        const answer = await explainingSilence(`job ${array.id}`, context, () =>
          session.retrying((api) => api.requeueJob(id, requestId, choice.from, specJson, force), {
            patienceMs: submitPatienceMs,
            onAway: ({ message }) => progress.show(`${message}; reconnecting`),
          }),
        );
        requeued.push({ index, from: id, jobId: answer.jobId });
      } catch (error) {
        if (!isOfOneJob(error)) throw error;
        refused.push({ index, jobId: id, message: messageOf(error) });
      }
      progress.show(`${requeued.length} of ${count(chosen.length, 'job')} requeued`);
    });
  } finally {
    progress.end();
  }
  await io.stderr.write(
    summaryText(array, chosen, requeued.length, jobs.members.length, environment.programName),
  );
  if (refused.length > 0) await io.stderr.write(refusalText(refused));
  const byIndex = (a: { index: number }, b: { index: number }) => a.index - b.index;
  return { arrayId: array.id, requeued: requeued.toSorted(byIndex), refused: refused.toSorted(byIndex) };
}

function isChosen({ state }: Member, all: boolean): boolean {
  if (state === 'failed' || state === 'cancelled') return true;
  // What is queued runs in any case, and what is stopping cannot be requeued before its end.
  return all && state !== 'queued' && state !== 'stopping';
}

async function requireLeave(
  context: Context,
  { id, name }: ArrayReferent,
  chosen: readonly Member[],
  { force, specOf }: ArrayRequeue,
): Promise<void> {
  const active = chosen.filter(({ state }) => !isTerminal(state));
  if (active.length === 0) return;
  const running = `${count(active.length, 'job')} of ${printable(name)} (${id}) ${active.length === 1 ? 'has' : 'have'} not ended`;
  const { programName } = context.environment;
  if (specOf !== null)
    throw usageError(
      `--set changes jobs that have ended; ${running}`,
      `Without --all only those that failed or were cancelled are requeued. Stop the others: ${programName} stop ${id}`,
    );
  if (force) return;
  await requireConsent(
    context,
    `${running}; requeueing ${active.length === 1 ? 'it' : 'them'} stops what runs`,
    `${programName} requeue ${id} --all --force`,
  );
}

/** The others may well be accepted. */
function isOfOneJob(error: unknown): error is MusterError {
  return error instanceof MusterError && ['failed_precondition', 'not_found'].includes(error.code);
}

/** `requeued 7 of 10 jobs: 5 failed, 2 cancelled; see them with: muster job arr_…`. */
function summaryText(
  { id }: ArrayReferent,
  chosen: readonly Member[],
  requeued: number,
  size: number,
  programName: string,
): string {
  const states = countsText(countsOf({ members: chosen, notStored: 0 }));
  return `requeued ${requeued} of ${count(size, 'job')} (${states}); see them with: ${programName} job ${id}\n`;
}

function refusalText(refused: RequeuedArray['refused']): string {
  const [first] = refused;
  const more = refused.length === 1 ? '' : ` (and ${refused.length - 1} more; -o json lists them)`;
  return `${count(refused.length, 'job was', 'jobs were')} refused: ${printable(first?.message ?? '')}${more}\n`;
}
