/** `muster node add`: several machines at a time, each on its own; one that fails or vanishes stops no other. */
import type { MusterApi } from '@muster/common/wire/client';
import { inParallel } from '../arrays/inParallel.ts';
import { addressForOthers, hostOf, isLoopback } from '../connection.ts';
import type { Context } from '../context.ts';
import { CliError, failureOf, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest, type Output } from '../io.ts';
import { jsonText } from '../output/json.ts';
import { count, printable } from '../output/text.ts';
import { durationText } from '../output/times.ts';
import type { QueryFlags } from '../query.ts';
import { type Session, withSession } from '../session.ts';
import { type AddedNode, type AddPlan, addHost } from './addHost.ts';
import { type HostLines, openHostLines } from './hostLines.ts';
import { contextKey, noteHost } from './hostsFile.ts';
import { openArchive } from './releaseArchive.ts';
import { openRemoteShell } from './remoteShell.ts';
import { parseTarget, type SshTarget } from './sshTarget.ts';
import { openTunnel } from './tunnel.ts';

export interface AddFlags extends QueryFlags {
  readonly release?: string;
  readonly name?: string;
  readonly parallel: number;
  readonly coordinator?: string;
  readonly tunnel?: boolean;
  readonly tunnelPort: number;
  readonly user?: boolean;
  readonly allow?: readonly string[];
  readonly set?: readonly string[];
  readonly replace?: boolean;
}

/** What became of one machine. Absent is null. */
interface HostResult {
  readonly ssh: string;
  readonly node: string | null;
  readonly gpus: number | null;
  readonly findings: readonly string[];
  readonly error: string | null;
  readonly hint: string | null;
}

export async function addHosts(
  context: Context,
  typed: readonly string[],
  flags: AddFlags,
): Promise<ExitCode> {
  const targets = [...new Map(typed.map((text) => [text, parseTarget(text)])).values()];
  if (flags.name !== undefined && targets.length > 1)
    throw usageError(
      '--name is the name of one node, and several hosts are given',
      'Add that host by itself.',
    );
  if (flags.user === true && flags.allow !== undefined)
    throw usageError('--allow is for units of the system, and excludes --user');
  const { io, environment } = context;
  const key = contextKey(flags, environment);
  const stop = abortOnStopRequest(io);
  try {
    return await withSession(context, flags, async (session) => {
      const coordinator = coordinatorFor(flags, session, context);
      const archive = await openArchive(flags.release ?? null, environment);
      try {
        const plan: AddPlan = {
          archive,
          mode: flags.user === true ? 'user' : 'system',
          coordinator,
          tunnelPort: flags.tunnel === true ? flags.tunnelPort : null,
          name: flags.name ?? null,
          replace: flags.replace === true,
          allow: flags.allow ?? null,
          settings: flags.set ?? [],
        };
        const isJson = flags.output === 'json';
        const lines = openHostLines(io.stderr, isJson ? silent(io.stdout) : io.stdout);
        const results: HostResult[] = [];
        await inParallel(targets, flags.parallel, async (target) => {
          const tools = { session, lines, key, plan, signal: stop.signal };
          results.push(await addOne(target, tools, context));
        });
        const asTyped = targets.flatMap(({ text }) => results.filter(({ ssh }) => ssh === text));
        if (isJson) await io.stdout.write(`${jsonText({ hosts: asTyped })}\n`);
        return verdict(results, stop.signal.aborted);
      } finally {
        archive.close();
      }
    });
  } finally {
    stop.dispose();
  }
}

interface OneTools {
  readonly session: Session;
  readonly lines: HostLines;
  readonly key: string;
  readonly plan: AddPlan;
  readonly signal: AbortSignal;
}

async function addOne(target: SshTarget, tools: OneTools, context: Context): Promise<HostResult> {
  const { session, lines, key, plan, signal } = tools;
  const { environment, clock } = context;
  const { text } = target;
  const startedMs = clock.monotonicMs();
  const api: Pick<MusterApi, 'listNodes' | 'createJoinToken'> = session.api;
  try {
    const added = await addHost(plan, {
      shell: openRemoteShell(target, environment, signal),
      api,
      show: (step) => lines.show(text, step),
      openTunnel: (node, port) =>
        openTunnel(node, { target, port, coordinator: session.endpoint.address }, environment),
      onChosen: (node) =>
        noteHost(
          key,
          node,
          { ssh: text, tunnel: plan.tunnelPort !== null, ...(plan.mode === 'user' ? { user: true } : {}) },
          environment,
        ),
      signal,
    });
    await lines.end(text, addedText(text, added, clock.monotonicMs() - startedMs));
    const findings = added.findings.map(({ message }) => message);
    return { ssh: text, node: added.node, gpus: added.gpus, findings, error: null, hint: null };
  } catch (error) {
    const { message, hints } = failureOf(error);
    const hint = hints.join('\n');
    await lines.end(text, failedText(text, message, hints));
    return {
      ssh: text,
      node: null,
      gpus: null,
      findings: [],
      error: message,
      hint: hint === '' ? null : hint,
    };
  }
}

/** One line; below it what `doctor` found. */
function addedText(host: string, { node, gpus, findings }: AddedNode, tookMs: number): string {
  const verdictOfDoctor = findings.length === 0 ? 'no problems found' : count(findings.length, 'problem');
  const lines = findings.flatMap(({ name, message, remedy }) => [
    `  ${printable(name)}: ${printable(message)}`,
    ...(remedy === null ? [] : [`    ${printable(remedy)}`]),
  ]);
  const line = `${host}: added as ${node}, ${count(gpus, 'GPU')}, ${verdictOfDoctor} (${durationText(tookMs)})`;
  return `${[line, ...lines].join('\n')}\n`;
}

function failedText(host: string, message: string, hints: readonly string[]): string {
  const lines = hints.flatMap((hint) => hint.split('\n')).map((line) => `  ${printable(line)}`);
  return `${[`${host}: not added: ${printable(message, { keepLines: true })}`, ...lines].join('\n')}\n`;
}

/** @throws {CliError} when not all of them are nodes now */
function verdict(results: readonly HostResult[], isInterrupted: boolean): ExitCode {
  if (isInterrupted) return exitCodes.interrupted;
  const failed = results.filter(({ error }) => error !== null).length;
  if (failed === 0) {
    const isClean = results.every(({ findings }) => findings.length === 0);
    return isClean ? exitCodes.ok : exitCodes.problemFound;
  }
  throw new CliError(
    `${failed} of ${count(results.length, 'host')} ${failed === 1 ? 'was' : 'were'} not added`,
    {
      hints: ['The same command continues where each host stopped.'],
    },
  );
}

/** @returns `host:port` that the agents dial @throws {CliError} when there is none */
function coordinatorFor(flags: AddFlags, { endpoint }: Session, { environment }: Context): string {
  if (flags.tunnel === true) {
    if (flags.coordinator !== undefined)
      throw usageError('--coordinator and --tunnel exclude each other: a tunnel ends on loopback');
    return `127.0.0.1:${flags.tunnelPort}`;
  }
  if (flags.coordinator !== undefined) {
    if (hostOf(flags.coordinator) !== null) return flags.coordinator;
    throw usageError(`--coordinator takes HOST:PORT, such as gpu-head:7070; got "${flags.coordinator}"`);
  }
  const address = addressForOthers(endpoint, flags, environment);
  if (address !== null && !isLoopback(hostOf(address) ?? '')) return address;
  throw new CliError(`the coordinator at ${endpoint.address} serves this machine only`, {
    hints: [
      'Have it listen on an address that the hosts reach: muster coordinator --listen 0.0.0.0:7070',
      'Or lead each host to it through ssh: --tunnel',
    ],
  });
}

function silent(output: Output): Output {
  return { ...output, write: async () => {} };
}
