import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type AgentOptions, agentDefaults as defaults } from '@muster/agent/options';
import { type ErrorCode, MusterError } from '@muster/common/errors';
import { isNodeName } from '@muster/common/ids';
import { type AgentFlags, hasJoined, probeOptions, withAgentFlags } from '../agentFlags.ts';
import { withConfigFile } from '../config/configFile.ts';
import { givenCa, hostOf, readToken } from '../connection.ts';
import { containerPolicy } from '../containerFlags.ts';
import type { CommandModule, Context } from '../context.ts';
import { runDaemon } from '../daemon.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';

export const command: CommandModule = {
  define: withAgentFlags,
  withConfigFile,
  run: runAgentCommand,
};

function runAgentCommand(context: Context, flags: AgentFlags): Promise<ExitCode> {
  return runDaemon(context, async () => {
    const options = agentOptions(flags, context);
    const [{ runAgent }, { isShuttingDown, systemSources }] = await Promise.all([
      import('@muster/agent/main'),
      import('@muster/agent/leaving/systemShutdown'),
    ]);
    const asAgents = (error: unknown) => {
      throw withAgentHint(error, flags, context.environment);
    };
    const { closed, close, leave } = await runAgent(options).catch(asAgents);
    const { onSigterm, shutdownGraceMs } = options;
    return {
      address: null,
      closed: closed.catch(asAgents),
      close,
      async beforeClose() {
        const sources = systemSources(() => context.clock.wallMs());
        if (onSigterm === 'drain' || (await isShuttingDown(sources, shutdownGraceMs))) await leave();
      },
    };
  });
}

function agentOptions(flags: AgentFlags, { environment }: Context): AgentOptions {
  const { workingDir } = environment;
  if (!isNodeName(flags.name)) {
    throw usageError(
      `invalid node name "${flags.name}": expected 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  const joinToken = checkedJoinToken(joinTokenOf(flags, environment));
  const probes = probeOptions(flags, environment);
  return {
    ...probes,
    containers: containerPolicy(flags, probes.checkpointRoots, workingDir),
    dataDir: resolve(workingDir, flags.data),
    name: flags.name,
    coordinator: coordinatorAddress(flags.coordinator),
    caCertificate: givenCa(flags, environment),
    joinToken,
    cpus: flags.cpus ?? defaults.cpus,
    labels: Object.fromEntries((flags.label ?? []).map(labelPair)),
    accounts: (flags.account ?? []).map(accountRule),
    rootTasks: flags.rootTasks ?? defaults.rootTasks,
    guardCommand: flags.guard === 'service' ? null : environment.guardCommand,
    nvmlReaderCommand: environment.nvmlReaderCommand,
    onSigterm: flags.onSigterm ?? defaults.onSigterm,
    shutdownGraceMs: flags.shutdownGrace ?? defaults.shutdownGraceMs,
    outputLimits: {
      capBytes: flags.outputCap ?? defaults.outputLimits.capBytes,
      rateBytes: flags.outputRate ?? defaults.outputLimits.rateBytes,
      reserveBytes: flags.outputReserve ?? defaults.outputLimits.reserveBytes,
    },
    logLevel: flags.logLevel ?? defaults.logLevel,
  };
}

/** The file may be gone once the agent has joined: who placed it for the first start is right to remove it. */
function joinTokenOf({ joinTokenFile, data }: AgentFlags, environment: ProgramEnvironment): string | null {
  if (joinTokenFile === undefined) return environment.joinToken;
  const { workingDir } = environment;
  const path = joinTokenFile === '-' ? '/dev/stdin' : resolve(workingDir, joinTokenFile);
  const mayBeGone = hasJoined(resolve(workingDir, data)) && !existsSync(path);
  return mayBeGone ? null : readToken(path);
}

/** As a coordinator makes them: with the digest of its CA, where it has one. @throws {CliError} for anything else */
function checkedJoinToken(token: string | null): string | null {
  if (token === null || /^muster_join_[\w-]{43}(\.[\w-]{43})?$/.test(token)) return token;
  throw usageError(
    'this is not a join token: one begins with muster_join_ and is a single line',
    'Copy the whole line that `muster token create NAME` prints.',
  );
}

/** The hints for clients of the API name commands, variables and files that are none of an agent's. */
function withAgentHint(
  error: unknown,
  { name, coordinator }: AgentFlags,
  { programName }: ProgramEnvironment,
): unknown {
  if (!(error instanceof MusterError)) return error;
  const token = `On the coordinator: ${programName} token create ${name} --replace; start the agent with that token.`;
  const hints: Readonly<Partial<Record<ErrorCode, string>>> = {
    unauthenticated: token,
    unavailable: `Check that a coordinator runs at ${coordinator} and that this machine reaches it; then start the agent again.`,
  };
  const hint = hints[error.code];
  return new CliError(error.message, {
    code: error.code,
    cause: error,
    ...(hint === undefined ? {} : { hints: [hint] }),
  });
}

function coordinatorAddress(typed: string): string {
  if (hostOf(typed) !== null) return typed;
  throw usageError(`--coordinator takes HOST:PORT, such as gpu-head:7070; got "${typed}"`);
}

const accountForm = /^[A-Za-z0-9_][A-Za-z0-9_.@+\\-]{0,255}\$?$/;

function accountRule(text: string): AgentOptions['accounts'][number] {
  const [, of = '', name = '', account = ''] = /^(user:|project:|\*)([^=]*)=(.+)$/.exec(text) ?? [];
  const isAll = of === '*';
  if (of === '' || !accountForm.test(account) || (name === '') !== isAll) {
    throw usageError(`--account takes user:NAME=ACCOUNT, project:NAME=ACCOUNT or *=ACCOUNT; got "${text}"`);
  }
  if (isAll) return { of: 'all', name, account };
  return { of: of === 'user:' ? 'user' : 'project', name, account };
}

function labelPair(text: string): readonly [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw usageError(`--label takes NAME=VALUE; got "${text}"`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}
