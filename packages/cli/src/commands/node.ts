import { setTimeout as sleep } from 'node:timers/promises';
import type { Condition } from '@muster/common/conditions';
import { cardUuid } from '@muster/common/hardware';
import { closest } from '@muster/common/spec/suggest';
import type { NodeTask, NodeView, OrphanTask } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import type { Command } from 'commander';
import type { CommandModule, Context, Subcommand } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect, durationMs, wholeNumberFlag } from '../flags.ts';
import { cardText, worstFirst } from '../nodes/conditionText.ts';
import { formatNode } from '../nodes/nodeDetail.ts';
import { orphanLines } from '../nodes/nodeText.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { count } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import { ask, print, type QueryFlags, type TextOf, withQuery } from '../query.ts';
import type { AddFlags } from '../remote/addHosts.ts';
import type { RemoveFlags } from '../remote/removeHost.ts';
import { withSession } from '../session.ts';

interface DrainFlags extends QueryFlags {
  readonly deadline?: number;
  readonly reason?: string;
}

interface ClearFlags extends QueryFlags {
  readonly gpu?: string;
}

const weekMs = 7 * 24 * 60 * 60_000;

/** A subcommand that asks one thing about a node and prints the answer. */
interface NodeQuestion<Answer, Flags extends QueryFlags> {
  readonly name: string;
  readonly summary: string;
  /** What its help says after the flags. */
  readonly help?: string;
  readonly addOptions?: (sub: Command) => void;
  readonly question: (api: MusterApi, node: string, flags: Flags) => Promise<Answer>;
  readonly text: TextOf<Answer>;
  readonly note?: TextOf<Answer>;
}

function onNode<Answer, Flags extends QueryFlags = QueryFlags>(
  asked: NodeQuestion<Answer, Flags>,
): Subcommand {
  const { name, summary, help, addOptions, question, text, note } = asked;
  return {
    name,
    summary,
    define(sub) {
      sub.argument('<node>', 'its name');
      addOptions?.(sub);
      withQuery(sub);
      if (help !== undefined) sub.addHelpText('after', `\n${help}`);
    },
    run: (context: Context, node: string, flags: Flags) =>
      ask(context, flags, (api) => question(api, node, flags), text, note),
  };
}

const clear: Subcommand = {
  name: 'clear',
  summary: 'clear a condition by hand, once its problem is fixed',
  define(sub) {
    sub
      .argument('<node>', 'its name')
      .argument('<condition>', 'kind of the condition, such as xid_79')
      .option('--gpu <gpu>', 'number or UUID of the GPU; required if several GPUs have the condition');
    withQuery(sub);
  },
  run: clearCondition,
};

const add: Subcommand = {
  name: 'add',
  summary: 'make machines nodes through ssh: copies the release, installs the agent, joins, and examines',
  define(sub) {
    sub
      .argument('<host...>', '[USER@]HOST, as ssh takes it')
      .option('--release <file>', 'archive of a release; default: the release that this program runs from')
      .option('--name <node>', 'name of the node, for one host; default: the host name of the machine')
      .option('--parallel <count>', 'hosts at a time', wholeNumberFlag('--parallel', 1, 64), 8)
      .option(
        '--coordinator <host:port>',
        'address that the agents dial; default: the one that this call uses',
      )
      .option('--tunnel', 'the hosts cannot reach the coordinator: a unit here leads them to it by ssh -R')
      .option(
        '--tunnel-port <port>',
        'port of the tunnel, on the loopback interface of the hosts',
        wholeNumberFlag('--tunnel-port', 1, 65_535),
        17_070,
      )
      .option('--user', 'without root: the agent runs as the user that logs in')
      .option('--allow <network>', 'as `muster install agent` takes it; default: any', collect)
      .option('--set <key=value>', 'setting of the agent; may be repeated', collect)
      .option(
        '--replace',
        'the machine takes the name of a node, or joins again under its own: the old credential of that node ends',
      );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nUses the ssh of this machine: its keys, ~/.ssh/config and known_hosts; it asks nothing. Run it again after a failure: ' +
        'it\ncontinues where each host stopped. `muster node remove NODE` undoes it.',
    );
  },
  run: async (context: Context, hosts: readonly string[], flags: AddFlags) =>
    (await import('../remote/addHosts.ts')).addHosts(context, hosts, flags),
};

const remove: Subcommand = {
  name: 'remove',
  summary: 'remove a node: drain it, uninstall Muster where `node add` put it, and revoke its credential',
  define(sub) {
    sub
      .argument('<node>', 'its name')
      .option(
        '--deadline <duration>',
        'time in which its jobs are saved and stopped, such as 10m or 0',
        durationMs('--deadline', 0, weekMs),
        10 * 60_000,
      )
      .option('--no-drain', 'do not stop its jobs: refused while there are any')
      .option(
        '--force',
        'the machine is dead: its tasks count as ended, and nothing is uninstalled if it does not answer',
      )
      .option('--purge', 'also remove settings and data of the agent from the machine');
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nAn agent that still runs there is refused from then on. A reinstalled machine only needs to ' +
        'join again: `muster token create NODE --replace`.',
    );
  },
  run: async (context: Context, node: string, flags: RemoveFlags) =>
    (await import('../remote/removeHost.ts')).removeHost(context, node, flags),
};

const subcommands: readonly Subcommand[] = [
  add,
  onNode({
    name: 'drain',
    summary: 'give no new tasks to a node; with a deadline its jobs save, stop and are rescheduled before it',
    addOptions: (sub) =>
      sub
        .option(
          '--deadline <duration>',
          'stop its jobs within this time, such as 10m or 0; default: wait until they end',
          durationMs('--deadline', 0, weekMs),
        )
        .option('--reason <text>', 'reason, shown with the drain'),
    help:
      'Jobs are stopped as by a preemption: the stop signal, stop_grace to save, then back to their queue position. ' +
      '`muster node undrain` undoes it.',
    question: (api, node, { reason, deadline }: DrainFlags) =>
      api.drainNode(node, reason ?? '', deadline ?? null),
    text: drainedText,
    note: (node, { programName }) => `Undo: ${programName} node undrain ${node.name}\n`,
  }),
  onNode({
    name: 'undrain',
    summary: 'give new tasks to a drained node again',
    question: (api, node) => api.undrainNode(node),
    text: (node) => {
      const but = node.drained ? ', but its conditions still prevent new work' : '';
      return `${node.name} is no longer drained${but}.\n`;
    },
  }),
  clear,
  onNode({
    name: 'confirm-dead',
    summary: 'confirm that nothing runs on a silent node: its jobs are rescheduled at once',
    help:
      'Make sure first that the machine is off, or that its agent and tasks have ended. A node that only lost its network ' +
      'keeps running until its leases expire, and its jobs would run twice.',
    question: (api, node) => api.confirmDead(node),
    text: (node) => `${node.name} is confirmed dead: its tasks have ended as node_lost.\n`,
  }),
  onNode({
    name: 'rejoin',
    summary: 'let another machine with the credential of a node be that node, such as one that was restored',
    help:
      'A machine that was refused as `duplicate_identity` tries again within 30 s, and is the node then. Refused while the node ' +
      'answers: stop the agent of the machine that should no longer be it. Tasks that it still has end with their leases.',
    question: (api, node) => api.rejoinNode(node),
    text: (node) => `The next machine with the credential of ${node.name} becomes ${node.name}.\n`,
  }),
  onNode({
    name: 'end-orphans',
    summary: 'kill the tasks of a node that the store does not know, as after a restore from a backup',
    help: 'Their checkpoints stay where they are. `muster nodes` lists orphans; their GPUs count as used until they have ended.',
    question: async (api, node) => ({ node, ended: await endedOrphans(api, node) }),
    text: ({ node, ended }) => {
      if (ended.length === 0) return `${node} has no orphans.\n`;
      const what = count(ended.length, 'orphan has ended', 'orphans have ended');
      return `${what} on ${node}:\n${orphanLines(ended)}`;
    },
  }),
  remove,
];

export const command: CommandModule = {
  define(sub) {
    sub.argument('<node>', 'its name');
    withQuery(sub);
    // They read as they are typed; the price is some odd names.
    sub.addHelpText('after', '\nTo see a node with the name of a subcommand, use `muster nodes -o json`.');
  },
  run: (context: Context, name: string, flags: QueryFlags) =>
    ask(context, flags, (api) => api.getNode(name), formatNode),
  subcommands,
};

const pollMs = 200;
/** For the agent to kill them and report it in a heartbeat. */
const goneWithinMs = 30_000;

/** @throws {CliError} when some did not end in time */
async function endedOrphans(api: MusterApi, name: string): Promise<readonly OrphanTask[]> {
  const { orphans } = await api.endOrphans(name);
  let left = orphans;
  for (let waitedMs = 0; left.length > 0 && waitedMs < goneWithinMs; waitedMs += pollMs) {
    await sleep(pollMs);
    left = (await api.getNode(name)).orphans;
  }
  if (left.length === 0) return orphans;
  throw new CliError(`${count(left.length, 'orphan')} of ${name} did not end within 30 s`, {
    code: 'deadline_exceeded',
    hints: [`The log of its agent says more. They are:\n${orphanLines(left).trimEnd()}`],
  });
}

/** What is so near is not counted down. */
const soonMs = 1_000;

/** Every job on the node, with and without GPUs, and when it is stopped. */
function drainedText({ name, tasks }: NodeView, view: View): string {
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
    { header: 'STOPS', cell: (each) => stopText(each, view.nowMs) },
  ];
  return `${name} is drained: it gets no new work. ${what.join(', ')}.\n${formatTable(tasks, columns, view)}`;
}

function stopText({ stopAtMs, stopping }: NodeTask, nowMs: number): string {
  if (stopping) return 'is being stopped';
  if (stopAtMs === null) return 'when it ends';
  return stopAtMs - nowMs < soonMs ? 'now' : `in ${durationText(stopAtMs - nowMs)}`;
}

async function clearCondition(
  context: Context,
  name: string,
  kind: string,
  flags: ClearFlags,
): Promise<ExitCode> {
  const { condition, node } = await withSession(context, flags, async ({ api }) => {
    const before = await api.getNode(name);
    const found = conditionMeant(before, kind, flags.gpu ?? null, context);
    const { gpuUuid } = found;
    return { condition: found, node: await api.clearCondition({ node: name, kind: found.kind, gpuUuid }) };
  });
  return print(context, flags, node, () => {
    const left = node.conditions.length === 0 ? 'nothing else is wrong with it' : 'other conditions remain';
    const back = condition.clears === 'when_gone' ? '; it returns if the next reading still shows it' : '';
    return `${kind} of ${placeText(condition, node)} is cleared${back}; ${left}\n`;
  });
}

/** @throws {CliError} that names the conditions there are */
function conditionMeant(
  node: NodeView,
  kind: string,
  gpu: string | null,
  { environment }: Context,
): Condition {
  const { conditions } = node;
  const sameKind = conditions.filter((condition) => condition.kind === kind);
  if (sameKind.length === 0) {
    const kinds = [...new Set(worstFirst(conditions).map((condition) => condition.kind))];
    if (kinds.length === 0)
      throw new CliError(`${node.name} has no conditions, so none named "${kind}"`, { code: 'not_found' });
    const meant = closest(kind, kinds);
    throw usageError(
      `${node.name} has no condition "${kind}"`,
      ...(meant === null ? [] : [`Did you mean ${meant}?`]),
      `It has: ${kinds.join(', ')}`,
    );
  }
  const here = gpu === null ? sameKind : sameKind.filter(({ gpuUuid }) => isGpu(gpuUuid, gpu, node));
  const [only, ...more] = here;
  if (only !== undefined && more.length === 0) return only;
  const places = sameKind.map((condition) => placeText(condition, node)).join(', ');
  if (only === undefined)
    throw usageError(`${kind} of ${node.name} is not on GPU ${gpu}`, `It is on: ${places}`);
  throw usageError(
    `${kind} is on several GPUs of ${node.name}: ${places}`,
    `Name one with --gpu; \`${environment.programName} node ${node.name}\` shows them.`,
  );
}

/** @param typed number of a card as the driver counts, or UUID of the card or of a part of it */
function isGpu(conditionUuid: string | null, typed: string, { inventory }: NodeView): boolean {
  if (conditionUuid === null) return false;
  if (conditionUuid === typed) return true;
  return inventory.gpus.some(
    (gpu) => (String(gpu.index) === typed || gpu.uuid === typed) && cardUuid(gpu) === conditionUuid,
  );
}

function placeText({ gpuUuid }: Condition, { name, inventory }: NodeView): string {
  return gpuUuid === null ? name : `${cardText(gpuUuid, inventory.gpus)} of ${name}`;
}
