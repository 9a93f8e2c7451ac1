import { resolve } from 'node:path';
import type { DoctorCheck, DoctorReport } from '@muster/agent/doctor/doctorReport';
import { type AgentOptions, agentDefaults } from '@muster/agent/options';
import { messageOf } from '@muster/common/errors';
import { isNodeName } from '@muster/common/ids';
import { toLabel } from '@muster/common/spec/forms';
import { Command } from 'commander';
import { type ProbeFlags, probeOptions, withProbeFlags } from '../agentFlags.ts';
import { type ConnectionFlags, lastDataDir, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { examineCoordinator } from '../doctor/coordinatorChecks.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { type Colours, coloursFor, type Style } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import type { View } from '../output/table.ts';
import { count, printable, textWidth } from '../output/text.ts';

export interface DoctorFlags extends ConnectionFlags, OutputFlags, ProbeFlags {
  readonly name?: string;
  readonly agentData?: string;
  readonly service?: string;
}

export type ExamineNode = (options: AgentOptions) => Promise<DoctorReport>;

export const command: CommandModule = {
  define(sub) {
    sub
      .option(
        '--name <node>',
        'name of this node; default: the node of this host, as known to the coordinator',
      )
      .option('--agent-data <dir>', "the agent's data directory; default: that of the last `muster up`");
    sub.option(
      '--service <which>',
      "examine as the service, in its sandbox and with its flags: agent, or an agent's pid; requires root",
    );
    withConnection(withProbeFlags(withOutput(sub)));
    sub.addHelpText(
      'after',
      '\nTakes the flags of `muster agent`, and needs no coordinator. Exit code 1: a problem was found.',
    );
  },
  run: (context: Context, flags: DoctorFlags) =>
    flags.service === undefined
      ? examine(context, flags, async (options) =>
          (await import('@muster/agent/doctor/doctor')).examineNode(options),
        )
      : examineService(context, flags, flags.service),
};

async function examineService(context: Context, flags: DoctorFlags, service: string): Promise<ExitCode> {
  const { examineAsService, findService } = await import('../doctor/serviceView.ts');
  const pid = await findService(service);
  const sub = new Command();
  command.define(sub);
  return examine(context, flags, () => examineAsService(pid, sub.options, context.environment));
}

/** @param examineNode looks at this machine as an agent with these options would */
export async function examine(
  context: Context,
  flags: DoctorFlags,
  examineNode: ExamineNode,
): Promise<ExitCode> {
  const { io, environment } = context;
  if (flags.name !== undefined && !isNodeName(flags.name))
    throw usageError(`invalid node name "${flags.name}"`);
  const options = agentOptions(flags, context);
  const [machine, coordinator] = await Promise.all([
    examineNode(options).then(({ checks }) => checks, examinationFailed),
    examineCoordinator(context, flags, flags.name ?? null),
  ]);
  const checks = [...machine, ...coordinator];
  if (flags.output === 'json') {
    await writeJson(io.stdout, { checks } satisfies DoctorReport);
  } else {
    const colours = coloursFor(io.stdout, environment);
    await io.stdout.write(formatDoctor(checks, { colours, unicode: environment.unicode }));
  }
  return checks.some(({ state }) => state === 'problem') ? exitCodes.problemFound : exitCodes.ok;
}

/** A doctor who faints is the finding. */
function examinationFailed(error: unknown): readonly DoctorCheck[] {
  return [
    {
      area: 'this machine',
      name: 'examination',
      state: 'problem',
      chosen: false,
      message: `it broke off: ${messageOf(error)}`,
      evidence: null,
      remedy: null,
    },
  ];
}

/** What an agent here would be started with, as far as it is configured. */
function agentOptions(flags: DoctorFlags, { environment }: Context): AgentOptions {
  const { workingDir, hostname, guardCommand, nvmlReaderCommand } = environment;
  return {
    ...probeOptions(flags, environment),
    containers: agentDefaults.containers,
    accounts: agentDefaults.accounts,
    rootTasks: agentDefaults.rootTasks,
    dataDir: flags.agentData === undefined ? usualDataDir(environment) : resolve(workingDir, flags.agentData),
    name: flags.name ?? (toLabel(hostname) || 'node'),
    coordinator: flags.addr ?? environment.address ?? '',
    caCertificate: agentDefaults.caCertificate,
    joinToken: null,
    cpus: agentDefaults.cpus,
    outputLimits: agentDefaults.outputLimits,
    labels: agentDefaults.labels,
    guardCommand,
    nvmlReaderCommand,
    onSigterm: agentDefaults.onSigterm,
    shutdownGraceMs: agentDefaults.shutdownGraceMs,
    logLevel: 'silent',
  };
}

function usualDataDir(environment: ProgramEnvironment): string {
  try {
    return lastDataDir(environment);
  } catch {
    // The note of the last `muster up` is damaged. The search for the coordinator fails on it too, and reports that.
    return environment.defaultDataDir;
  }
}

/** What an examination found, for a person. Pure. */

interface Mark {
  readonly unicode: string;
  readonly ascii: string;
  readonly style: Style;
}

const marks: Readonly<Record<DoctorCheck['state'], Mark>> = {
  ok: { unicode: '✓', ascii: 'ok', style: 'green' },
  absent: { unicode: '–', ascii: '-', style: 'dim' },
  warning: { unicode: '!', ascii: '!', style: 'yellow' },
  problem: { unicode: '✗', ascii: 'x', style: 'red' },
};

/** Grouped by area in the order in which the areas come; below what is wrong, what was read and what to do. */
function formatDoctor(checks: readonly DoctorCheck[], options: Pick<View, 'colours' | 'unicode'>): string {
  const { colours } = options;
  const nameWidth = Math.max(0, ...checks.map(({ name }) => textWidth(printable(name))));
  const areas = Map.groupBy(checks, ({ area }) => area);
  const blocks = Array.from(areas, ([area, inArea]) => {
    const lines = inArea.map((check) => formatCheck(check, nameWidth, options));
    return `${colours.bold(printable(area))}\n${lines.join('')}`;
  });
  return [...blocks, verdictText(checks, colours)].join('\n');
}

function formatCheck(
  { name, state, chosen, message, evidence, remedy }: DoctorCheck,
  nameWidth: number,
  { colours, unicode }: Pick<View, 'colours' | 'unicode'>,
): string {
  const mark = marks[state];
  const sign = unicode ? mark.unicode : mark.ascii.padEnd(2);
  const label = printable(name);
  const padded = label + ' '.repeat(nameWidth - textWidth(label));
  const heading = `  ${colours[mark.style](sign)} ${padded}  ${printable(message)}${chosen ? colours.dim(' (used)') : ''}\n`;
  const indent = ' '.repeat(textWidth(sign) + nameWidth + 5);
  const isWrong = state === 'warning' || state === 'problem';
  const below = [
    isWrong && evidence !== null ? colours.dim(`Read: ${printable(evidence)}`) : null,
    remedy === null ? null : `${unicode ? '→' : '->'} ${printable(remedy)}`,
  ].filter((line) => line !== null);
  return heading + below.map((line) => `${indent}${line}\n`).join('');
}

function verdictText(checks: readonly DoctorCheck[], { red, yellow, green }: Colours): string {
  const problems = checks.filter(({ state }) => state === 'problem').length;
  const warnings = checks.filter(({ state }) => state === 'warning').length;
  if (problems + warnings === 0) return `${green('No problems found.')}\n`;
  const parts = [
    ...(problems === 0 ? [] : [red(count(problems, 'problem'))]),
    ...(warnings === 0 ? [] : [yellow(count(warnings, 'warning'))]),
  ];
  return `${parts.join(', ')}.\n`;
}
