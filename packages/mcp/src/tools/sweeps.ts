/** Sweeps: searches for good parameters, each trial of which is a workload. */
import { MusterError } from '@muster/common/errors';
import { hasSweepEnded, type SweepView, sweepStates } from '@muster/common/sweeps';
import * as z from 'zod';
import { cursor, dryRun, limitOf, listedMax, nextCursor, requestId } from '../parameters.ts';
import { brief, isoTime, pageFrom } from '../size.ts';
import { sweepFileOf, sweepInput } from '../sweepFile.ts';
import { tool } from '../tool.ts';
import { trialRow, trialRowOf, trialState, trialsInOrder, trialsOrder } from '../trials.ts';

const sweepId = z
  .string()
  .min(1)
  .max(128)
  .describe('id of the sweep (swp_…), the unique beginning of one, its name, or latest');

const sweepRow = z.object({
  sweepId: z.string(),
  name: z.string(),
  state: z.enum(sweepStates),
  reason: z.string().nullable().describe('why it has ended, or is about to; null: it continues, or is done'),
  objective: z.string().describe('what it optimises'),
  sampler: z.string(),
  trials: z.number().describe('how many it will have in all'),
  running: z.number(),
  complete: z.number(),
  pruned: z.number().describe('stopped early'),
  infeasible: z.number().describe('whose parameters do not work, such as a batch that is too large'),
  failed: z.number(),
  stopped: z.number(),
  best: trialRow
    .nullable()
    .describe('the complete trial with the best value of the first objective; null: none is complete yet'),
  use: z
    .object({
      trials: z.number(),
      trialsLimit: z.number(),
      gpuHours: z.number(),
      gpuHoursLimit: z.number().nullable(),
      usd: z.number().nullable().describe('null: the coordinator has no prices'),
      usdLimit: z.number().nullable(),
      wallClockHours: z.number(),
      wallClockHoursLimit: z.number().nullable(),
    })
    .nullable()
    .describe('what it has used of its limits; a limit that is null does not exist'),
  project: z.string(),
  user: z.string(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
});

function sweepRowOf(sweep: SweepView): z.input<typeof sweepRow> {
  const { running, complete, pruned, infeasible, failed, stopped, best } = sweep;
  return {
    sweepId: sweep.id,
    name: sweep.name,
    state: sweep.state,
    reason: brief(sweep.reason),
    objective: objectiveOf(sweep),
    sampler: wordOf(sweep.spec['sampler']),
    trials: sweep.trials,
    running,
    complete,
    pruned,
    infeasible,
    failed,
    stopped,
    best: best === null ? null : trialRowOf(best),
    use: sweep.use,
    project: sweep.project,
    user: sweep.user,
    createdAt: isoTime(sweep.createdAtMs),
    endedAt: isoTime(sweep.endedAtMs),
  };
}

/** `min eval_loss`, or several. */
function objectiveOf({ spec }: SweepView): string {
  const all = (spec['objectives'] ?? [spec['objective'] ?? {}]) as readonly Readonly<
    Record<string, unknown>
  >[];
  return all.map(({ goal, metric }) => `${wordOf(goal)} ${wordOf(metric)}`).join(', ');
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? brief(value, 60) : '';
}

/** One line about a sweep. */
function sweepSentence({ id, name, state, reason, running, trials, best }: SweepView): string {
  const why = reason === null ? '' : `: ${brief(reason)}`;
  const found =
    best === null ? 'no trial has a value yet' : `trial ${best.number} is best with ${best.value}`;
  return `${name} (${id}) is ${state}${why}; ${running} of ${trials} trials run, and ${found}.`;
}

export const sweepStart = tool({
  name: 'sweep_start',
  title: 'Start a sweep',
  about:
    'Searches for the parameters that give the best value of a metric: each trial is a workload with other parameters, which stand as ' +
    '{name} in its command, args and env. With dryRun it is checked only. Start with a requestId, so that a repeated call never makes a ' +
    'second one; then follow it with sweep_get.',
  verb: 'submit',
  effect: 'change',
  idempotent: false,
  input: sweepInput.extend({ requestId, dryRun }),
  output: z.object({ dryRun: z.boolean(), sweep: sweepRow.describe('of a dry run without an id') }),
  async run(given, { api, newRequestId }) {
    const sweep = await api.createSweep({
      specJson: JSON.stringify(sweepFileOf(given)),
      requestId: given.requestId ?? newRequestId(),
      dryRun: given.dryRun,
    });
    const data = { dryRun: given.dryRun, sweep: sweepRowOf(sweep) };
    if (given.dryRun)
      return { data, text: `Dry run, nothing was started. Valid; it would have ${sweep.trials} trials.` };
    return { data, text: `Started ${sweep.id} with ${sweep.trials} trials. Follow it with sweep_get.` };
  },
});

export const sweepGet = tool({
  name: 'sweep_get',
  title: 'Show a sweep',
  about: 'How far a sweep is, and its best trial. sweep_trials has the others.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({ sweepId }),
  output: sweepRow,
  async run(given, { api }) {
    const sweep = await api.getSweep(given.sweepId);
    return { data: sweepRowOf(sweep), text: sweepSentence(sweep) };
  },
});

export const sweepTrials = tool({
  name: 'sweep_trials',
  title: 'List the trials of a sweep',
  about:
    'Parameters and values of the trials, best first or by number. Each has the id of its workload, for the other tools.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    sweepId,
    states: z.array(trialState).max(10).default([]).describe('only these states; default: all'),
    order: trialsOrder,
    limit: limitOf(100, 20),
    cursor,
  }),
  output: z.object({
    trials: z.array(trialRow),
    total: z.number().describe('trials in these states'),
    nextCursor,
  }),
  async run(given, { api }) {
    const sweep = await api.getSweep(given.sweepId);
    const all = await api.listTrials(sweep.id);
    const chosen = all.filter(({ state }) => given.states.length === 0 || given.states.includes(state));
    const ordered = trialsInOrder(sweep, chosen, given.order);
    const { page, nextCursor: next } = pageFrom(ordered.map(trialRowOf), given);
    return {
      data: { trials: [...page], total: chosen.length, nextCursor: next },
      text: `${page.length} of ${chosen.length} trials${next === null ? '' : '; pass nextCursor for more'}.`,
    };
  },
});

export const sweepList = tool({
  name: 'sweep_list',
  title: 'List sweeps',
  about: 'Sweeps that you may see, newest first.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    active: z.boolean().default(false).describe('only those that have not ended'),
    limit: limitOf(50, 20),
    cursor,
  }),
  output: z.object({ sweeps: z.array(sweepRow), nextCursor }),
  async run(given, { api }) {
    const { sweeps } = await api.listSweeps({ active: given.active, limit: listedMax });
    const { page, nextCursor: next } = pageFrom(sweeps.map(sweepRowOf), given);
    return {
      data: { sweeps: [...page], nextCursor: next },
      text: `${page.length} of ${sweeps.length} sweeps${next === null ? '' : '; pass nextCursor for more'}.`,
    };
  },
});

export const sweepStop = tool({
  name: 'sweep_stop',
  title: 'Stop a sweep',
  about:
    'Starts no more trials, and stops those that run, each with its stop_grace to save a checkpoint. What has ended keeps its value, and ' +
    'sweep_extend continues the sweep.',
  verb: 'change',
  effect: 'destroy',
  idempotent: true,
  input: z.strictObject({
    sweepId,
    reason: z.string().max(200).default('').describe('shown with the sweep'),
    dryRun,
  }),
  output: z.object({ dryRun: z.boolean(), sweep: sweepRow }),
  async run(given, { api }) {
    const before = await api.getSweep(given.sweepId);
    // A repeated call finds what the first one has done.
    if (hasSweepEnded(before.state) && before.state !== 'stopped')
      throw new MusterError(
        'failed_precondition',
        `${before.id} is ${before.state}: there is nothing to stop`,
      );
    const isOver = given.dryRun || before.state === 'stopped';
    const sweep = isOver ? before : await api.stopSweep(before.id, given.reason);
    const data = { dryRun: given.dryRun, sweep: sweepRowOf(sweep) };
    if (before.state === 'stopped') return { data, text: `${sweep.id} had been stopped before.` };
    if (given.dryRun)
      return { data, text: `Dry run, nothing was stopped. ${before.running} trials would be.` };
    return { data, text: `${sweep.id} starts no more trials; ${sweep.running} still end.` };
  },
});

export const sweepExtend = tool({
  name: 'sweep_extend',
  title: 'Give a sweep more trials',
  about: 'Adds trials; a sweep that has ended continues. With a requestId a repeated call adds once.',
  verb: 'change',
  effect: 'change',
  idempotent: false,
  input: z.strictObject({
    sweepId,
    trials: z.int().min(1).max(10_000).describe('how many more'),
    requestId,
    dryRun,
  }),
  output: z.object({ dryRun: z.boolean(), sweep: sweepRow.describe('of a dry run as it would be') }),
  async run(given, { api, newRequestId }) {
    const before = await api.getSweep(given.sweepId);
    if (!given.dryRun) {
      const sweep = await api.extendSweep(before.id, given.trials, given.requestId ?? newRequestId());
      return {
        data: { dryRun: false, sweep: sweepRowOf(sweep) },
        text: `${sweep.id} will have ${sweep.trials} trials.`,
      };
    }
    if (before.state === 'stopping' || before.spec['sampler'] === 'grid')
      throw new MusterError(
        'failed_precondition',
        before.state === 'stopping'
          ? `${before.id} is stopping; extend it once it has stopped`
          : `${before.id} tries the points of a grid, which has no others`,
      );
    const after: SweepView = {
      ...before,
      state: 'running',
      reason: null,
      trials: before.trials + given.trials,
    };
    return {
      data: { dryRun: true, sweep: sweepRowOf(after) },
      text: `Dry run, nothing was changed. It would have ${after.trials} trials.`,
    };
  },
});
