/**
 * Looks at this machine as a running service does: in its mount namespace, as its user, with its capabilities and flags. An
 * admin's shell sees more, and would report no problem where the service sees nothing.
 *
 * Known limit: filters of system calls and of addresses are not imitated.
 */
import { execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { DoctorReport } from '@muster/agent/doctor/doctorReport';
import { messageOf } from '@muster/common/errors';
import { Command } from 'commander';
import { withAgentFlags } from '../agentFlags.ts';
import { asWords, configPath, readConfigFile } from '../config/configFile.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, usageError } from '../errors.ts';

const unitOfAgent = 'muster-agent.service';
/** Sources of GPU facts are given 20 s each. */
const timeoutMs = 5 * 60_000;

/**
 * @param service `agent`, as systemd runs it, or the pid of one
 * @throws {CliError} when there is no such service, or it cannot be looked as
 */
export async function findService(service: string): Promise<number> {
  if (/^[1-9]\d{0,9}$/.test(service)) return Number(service);
  if (service !== 'agent')
    throw usageError(`--service takes agent, or the pid of an agent; got "${service}"`);
  if (!existsSync('/run/systemd/system')) {
    throw new CliError('systemd does not run this machine, so there is no service to look as', {
      hints: ['Name the pid of the agent: --service PID'],
    });
  }
  const { stdout } = await promisify(execFile)('systemctl', [
    'show',
    '--property=MainPID',
    '--value',
    unitOfAgent,
  ]);
  const pid = Number(stdout.trim());
  if (pid > 0) return pid;
  throw new CliError(`${unitOfAgent} does not run`, { hints: [`Its log: journalctl -u ${unitOfAgent}`] });
}

/**
 * @param known the options of `muster doctor`: of the agent's flags those that both have are handed on
 * @throws {CliError}
 */
export async function examineAsService(
  pid: number,
  known: Command['options'],
  { programCommand }: ProgramEnvironment,
): Promise<DoctorReport> {
  const flags = doctorFlags(withSettings(readService(pid, 'cmdline').split('\0')), known);
  const variables = readService(pid, 'environ').split('\0');
  const kept = variables.filter((each) => /^(?:PATH|LD_LIBRARY_PATH|MUSTER_CHECKPOINT_ROOTS)=/.test(each));
  const inside = [
    '--target',
    String(pid),
    '--mount',
    '--',
    'setpriv',
    ...privilegesOf(readService(pid, 'status')),
  ];
  const doctor = [...programCommand, 'doctor', ...flags, '--output', 'json'];
  const stdin = openStdin(pid);
  try {
    const text = await run('nsenter', [...inside, ...doctor], stdin, kept);
    const { checks } = JSON.parse(text) as DoctorReport;
    return { checks: checks.filter(({ area }) => area !== 'coordinator') };
  } catch (error) {
    throw new CliError(`process ${pid} cannot be looked as: ${messageOf(error)}`, {
      cause: error,
      hints: ['It takes root, nsenter and setpriv (Debian package util-linux).'],
    });
  } finally {
    if (stdin !== null) closeSync(stdin);
  }
}

/** The words of an agent's command line, with the settings of its file before those that replace them. */
function withSettings(argv: readonly string[]): readonly string[] {
  const path = configPath(argv);
  const agent = new Command('agent');
  withAgentFlags(agent);
  return path === null ? argv : [...asWords(readConfigFile(path, agent)), ...argv];
}

/** Of `muster agent --data D --kernel-log - …` what `muster doctor` takes as well. */
export function doctorFlags(argv: readonly string[], known: Command['options']): readonly string[] {
  const taken: string[] = [];
  // Doctor's own name for it, and one that means something else there.
  const renamed = new Map([['--data', '--agent-data']]);
  for (const [index, word] of argv.entries()) {
    const [name = '', inline] = word.split(/=(.*)/s, 2);
    const option = known.find(({ long }) => long === (renamed.get(name) ?? name));
    if (option === undefined || !name.startsWith('--')) continue;
    const value = inline ?? argv[index + 1] ?? '';
    taken.push(option.long ?? name, ...(option.required ? [value] : []));
  }
  return taken;
}

/** As arguments of setpriv. @param status text of /proc/PID/status */
export function privilegesOf(status: string): readonly string[] {
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? '';
  const groups = /^Groups:[ \t]*(.*)$/m.exec(status)?.[1]?.trim() ?? '';
  const bounding = capabilities(field('CapBnd'));
  return [
    '--reuid',
    field('Uid'),
    '--regid',
    field('Gid'),
    ...(groups === '' ? ['--clear-groups'] : ['--groups', groups.split(/\s+/).join(',')]),
    '--inh-caps',
    '-all',
    '--bounding-set',
    ['-all', ...bounding.map((each) => `+${each}`)].join(','),
    ...(field('NoNewPrivs') === '1' ? ['--no-new-privs'] : []),
    '--',
  ];
}

function capabilities(mask: string): readonly string[] {
  const bits = BigInt(`0x${mask || '0'}`);
  return Array.from({ length: 64 }, (_, bit) => bit)
    .filter((bit) => (bits & (1n << BigInt(bit))) !== 0n)
    .map((bit) => `cap_${bit}`);
}

function readService(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    throw new CliError(`there is no process ${pid} that could be looked at: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** The kernel log may be handed over as standard input. null: it is nothing that can be opened again. */
function openStdin(pid: number): number | null {
  try {
    return openSync(`/proc/${pid}/fd/0`, 'r');
  } catch {
    return null;
  }
}

function run(
  program: string,
  args: readonly string[],
  stdin: number | null,
  variables: readonly string[],
): Promise<string> {
  const env = Object.fromEntries(variables.map((each) => each.split(/=(.*)/s, 2) as [string, string]));
  const child = spawn(program, args, { stdio: [stdin ?? 'ignore', 'pipe', 'pipe'], env, timeout: timeoutMs });
  return new Promise((resolve, reject) => {
    let [output, stderr] = ['', ''];
    child.stdout?.on('data', (data: Buffer) => (output += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (stderr = (stderr + data.toString()).slice(-2_000)));
    child.on('error', reject);
    // It ends with 1 when there is something to fix, and has printed its report then.
    child.on('close', (code) =>
      output === '' ? reject(new Error(stderr.trim() || `exit code ${code}`)) : resolve(output),
    );
  });
}
