import { resolve } from 'node:path';
import { type AgentOptions, agentDefaults as defaults } from '@muster/agent/options';
import { isNodeName } from '@muster/common/ids';
import { type ProbeFlags, probeOptions, withProbeFlags } from '../agentFlags.ts';
import { givenCa, hostOf, readToken } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { runDaemon } from '../daemon.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { collect, wholeNumber, withLogLevel } from '../flags.ts';

interface AgentFlags extends ProbeFlags {
  readonly data: string;
  readonly name: string;
  readonly coordinator: string;
  readonly joinTokenFile?: string;
  readonly ca?: string;
  readonly cpus?: number;
  readonly label?: readonly string[];
  readonly guard?: 'own' | 'service';
  readonly logLevel?: string;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .requiredOption('--data <dir>', "holds its credential and its tasks' files; one agent per directory")
      .requiredOption('--name <node>', 'name of this node')
      .requiredOption('--coordinator <host:port>', 'whom to report to')
      .option(
        '--join-token-file <file>',
        'file with a join token, needed once (or MUSTER_JOIN_TOKEN holds the token)',
      )
      .option(
        '--ca <file>',
        "certificate of the coordinator's CA (MUSTER_CA); default: the one that the join token names",
      )
      .option('--cpus <count>', 'CPUs to offer; default: all', wholeNumber('--cpus', 1, 4_096))
      .option('--label <name=value>', 'label of this node; may be repeated', collect)
      .addOption(
        sub
          .createOption(
            '--guard <whose>',
            'who starts the parent of bare tasks: own: this agent; service: muster-guard.service; default own',
          )
          .choices(['own', 'service']),
      );
    withProbeFlags(withLogLevel(sub));
  },
  run: runAgentCommand,
};

function runAgentCommand(context: Context, flags: AgentFlags): Promise<ExitCode> {
  return runDaemon(context, async () => {
    const options = agentOptions(flags, context);
    const { runAgent } = await import('@muster/agent/main');
    return { address: null, ...(await runAgent(options)) };
  });
}

function agentOptions(flags: AgentFlags, { environment }: Context): AgentOptions {
  const { workingDir } = environment;
  if (!isNodeName(flags.name)) {
    throw usageError(
      `"${flags.name}" is no node name: 1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends`,
    );
  }
  return {
    ...probeOptions(flags, workingDir),
    dataDir: resolve(workingDir, flags.data),
    name: flags.name,
    coordinator: coordinatorAddress(flags.coordinator),
    caCertificate: givenCa(flags, environment),
    joinToken:
      flags.joinTokenFile === undefined
        ? environment.joinToken
        : readToken(resolve(workingDir, flags.joinTokenFile)),
    cpus: flags.cpus ?? defaults.cpus,
    labels: Object.fromEntries((flags.label ?? []).map(labelPair)),
    guardCommand: flags.guard === 'service' ? null : environment.guardCommand,
    nvmlReaderCommand: environment.nvmlReaderCommand,
    logLevel: flags.logLevel ?? defaults.logLevel,
  };
}

function coordinatorAddress(typed: string): string {
  if (hostOf(typed) !== null) return typed;
  throw usageError(`--coordinator takes HOST:PORT, such as gpu-head:7070; got "${typed}"`);
}

function labelPair(text: string): readonly [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw usageError(`--label takes NAME=VALUE; got "${text}"`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}
