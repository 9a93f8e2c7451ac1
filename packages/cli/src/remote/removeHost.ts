/** `muster node remove`: its jobs are saved and rescheduled, Muster is uninstalled where it was added by ssh, its credential ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/common/errors';
import type { NodeView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { type Progress, startProgress } from '../output/screen.ts';
import { count } from '../output/text.ts';
import { print, type QueryFlags } from '../query.ts';
import { withSession } from '../session.ts';
import { type AgentMode, musterScript, parseFacts, probeScript } from './hostScripts.ts';
import { type AddedHost, contextKey, hostsOf, noteHost } from './hostsFile.ts';
import { openRemoteShell } from './remoteShell.ts';
import { parseTarget } from './sshTarget.ts';
import { closeTunnel } from './tunnel.ts';

export interface RemoveFlags extends QueryFlags {
  readonly deadline: number;
  /** false: --no-drain. */
  readonly drain: boolean;
  readonly force?: boolean;
  readonly purge?: boolean;
}

const pollMs = 500;

export async function removeHost(context: Context, node: string, flags: RemoveFlags): Promise<ExitCode> {
  const { io, environment, clock } = context;
  const key = contextKey(flags, environment);
  const host = hostsOf(key, environment)[node] ?? null;
  const isForced = flags.force === true;
  const progress = startProgress(io.stderr, clock);
  const stop = abortOnStopRequest(io);
  try {
    const answer = await withSession(context, flags, async ({ api }) => {
      const known = await nodeNow(api, node);
      if (known?.state === 'online' && flags.drain && !isForced)
        await drainUntilEmpty(api, node, flags.deadline, progress, stop.signal);
      let unreached: string | null = null;
      if (host !== null) {
        // It ends what runs there, and the coordinator refuses the removal only afterwards.
        if (!isForced) requireIdle(await nodeNow(api, node), environment.programName);
        progress.show(`uninstalling Muster on ${host.ssh}`);
        unreached = await uninstall(host, flags, context, stop.signal);
        if (unreached !== null && !isForced) throw notUninstalled(node, unreached, environment.programName);
        if (host.tunnel) closeTunnel(node, environment);
      }
      const isUninstalled = host !== null && unreached === null;
      const last =
        isForced && isUninstalled ? await whenNotBusy(api, node, clock, progress, stop.signal) : known;
      if (isForced && last !== null && last.state !== 'online' && last.tasks.length > 0)
        await api.confirmDead(node);
      // A host that was never online is known only here.
      await api.removeNode(node).catch((error: unknown) => {
        const isUnknown = error instanceof MusterError && error.code === 'not_found' && host !== null;
        if (!isUnknown) throw error;
      });
      if (host !== null) noteHost(key, node, null, environment);
      return { node, uninstalled: isUninstalled, unreached };
    });
    progress.end();
    const { unreached } = answer;
    return await print(
      context,
      flags,
      { node, uninstalled: answer.uninstalled },
      () =>
        `${node} was removed from the cluster${answer.uninstalled ? ', and Muster from its machine' : ''}.\n`,
      () =>
        unreached === null
          ? ''
          : `Muster is still installed there: ${unreached}. On that machine: muster uninstall agent${host?.user === true ? ' --user' : ''}\n`,
    );
  } finally {
    progress.end();
    stop.dispose();
  }
}

/** The jobs get a deadline to save, and are rescheduled. @throws {CliError} when the node no longer answers */
async function drainUntilEmpty(
  api: Pick<MusterApi, 'drainNode' | 'listNodes'>,
  name: string,
  deadlineMs: number,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  let node: NodeView | undefined = await api.drainNode(name, 'node remove', deadlineMs);
  while (node !== undefined && node.tasks.length > 0) {
    if (signal.aborted) throw new CliError(`${name} stays drained: interrupted`);
    if (node.state !== 'online') {
      throw new CliError(`${name} no longer responds, and ${count(node.tasks.length, 'task')} ran there`, {
        hints: [`If the machine is certainly dead: muster node remove ${name} --force`],
      });
    }
    progress.show(`${count(node.tasks.length, 'task')} of ${name} to be saved and rescheduled`);
    await sleep(pollMs);
    node = (await nodeNow(api, name)) ?? undefined;
  }
}

async function nodeNow(api: Pick<MusterApi, 'listNodes'>, name: string): Promise<NodeView | null> {
  return (await api.listNodes()).find((each) => each.name === name) ?? null;
}

/** @throws {CliError} while tasks of the node have not ended */
function requireIdle(node: NodeView | null, programName: string): void {
  if (node === null || node.tasks.length === 0) return;
  const { name, state, tasks } = node;
  const number = count(tasks.length, 'task');
  const have = tasks.length === 1 ? 'has' : 'have';
  if (state === 'online')
    throw new CliError(`${name} was not removed: it has ${number} that ${have} not ended`, {
      hints: [
        `To save and reschedule the jobs first, without --no-drain: ${programName} node remove ${name}`,
      ],
    });
  throw new CliError(`${name} was not removed: it is ${state}, and ${number} may run there`, {
    hints: [
      'Repeat the command once the node is online, or its tasks are fenced.',
      `If the machine is certainly dead: ${programName} node remove ${name} --force`,
    ],
  });
}

const silentWithinMs = 120_000;

/**
 * After an uninstallation that ended tasks: the coordinator counts them until the node is silent and confirmed dead.
 * @returns the node once it is not online, or has no tasks
 */
async function whenNotBusy(
  api: Pick<MusterApi, 'listNodes'>,
  name: string,
  clock: Context['clock'],
  progress: Progress,
  signal: AbortSignal,
): Promise<NodeView | null> {
  const startedMs = clock.monotonicMs();
  for (;;) {
    const node = await nodeNow(api, name);
    if (node?.state !== 'online' || node.tasks.length === 0) return node;
    if (signal.aborted) throw new CliError(`${name} was not removed: interrupted`);
    if (clock.monotonicMs() - startedMs > silentWithinMs)
      throw new CliError(
        `${name} was not removed: Muster was uninstalled there, and the node is still online`,
        {
          code: 'deadline_exceeded',
          hints: ['Another agent of this name runs. Stop it, and repeat the command.'],
        },
      );
    progress.show(`${name} to become silent`);
    await sleep(pollMs);
  }
}

/** @returns why it was not; null: it was */
async function uninstall(
  { ssh, user }: AddedHost,
  { purge }: RemoveFlags,
  { environment }: Context,
  signal: AbortSignal,
): Promise<string | null> {
  const mode: AgentMode = user === true ? 'user' : 'system';
  const words = [
    'uninstall',
    'agent',
    ...(mode === 'user' ? ['--user'] : []),
    '--force',
    ...(purge === true ? ['--purge'] : []),
  ];
  try {
    const shell = openRemoteShell(parseTarget(ssh), environment, signal);
    const facts = parseFacts((await shell.must(probeScript({ sum: '' }, mode))).stdout);
    // Nothing is left there: it was uninstalled by hand, or the machine was reinstalled.
    if (facts.installed === '') return null;
    await shell.elevated(mode === 'system' && !facts.isRoot).must(musterScript(words, mode));
    return null;
  } catch (error) {
    if (error instanceof CliError) return error.message;
    throw error;
  }
}

function notUninstalled(node: string, why: string, programName: string): CliError {
  return new CliError(`${node} was not removed: ${why}`, {
    hints: [
      'It is drained. Repeat the command once the machine can be reached.',
      `To revoke its credential anyway: ${programName} node remove ${node} --force`,
    ],
  });
}
