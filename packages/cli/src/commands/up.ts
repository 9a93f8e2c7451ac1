import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { agentDefaults } from '@muster/agent/options';
import { formatAddress, parseAddress } from '@muster/common/address';
import { whenAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import { makeDirectories } from '@muster/common/files';
import { keepLogSmall } from '@muster/common/logRotation';
import type { NodeView } from '@muster/common/views';
import { coordinatorDefaults } from '@muster/coordinator/options';
import { type AlertFlags, alertArguments, withAlertFlags } from '../alertFlags.ts';
import { readConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import {
  advertisedHosts,
  apiAddress,
  collect,
  listenHost,
  pageAddress,
  pageListen,
  wholeNumberFlag,
} from '../flags.ts';
import { abortOnStopRequest } from '../io.ts';
import { activeJobs } from '../jobs/pages.ts';
import { startProgress } from '../output/screen.ts';
import { printable } from '../output/text.ts';
import { type OutsideFlags, outsideArguments, withOutsideFlags } from '../outsideFlags.ts';
import { type Session, withSession } from '../session.ts';
import { upInBackground, upLogPath } from '../supervisor/background.ts';
import { type SupervisedChild, superviseChild } from '../supervisor/child.ts';
import {
  addressOfPage,
  agentPlan,
  coordinatorPlan,
  freeAddress,
  nodeNames,
  type UpOptions,
} from '../supervisor/cluster.ts';
import { lockForUp, rememberLastUp, removeUpState, writeUpState } from '../supervisor/upState.ts';
import { goodbyeText, welcomeText } from '../supervisor/upText.ts';

interface UpFlags extends AlertFlags, OutsideFlags {
  readonly nodes: number;
  readonly gpus?: number;
  readonly cpus?: number;
  readonly data?: string;
  readonly port: number;
  readonly listen: string;
  readonly advertise?: readonly string[];
  readonly http?: string;
  readonly api?: string;
  readonly mountRoot?: readonly string[];
  readonly detach?: boolean;
  /** The one that `--detach` has started. */
  readonly inBackground?: boolean;
}

/** For nodes to come online; a node that needs longer is reported and comes when it comes. */
const onlineWithinMs = 30_000;
const onlinePollMs = 50;
/** One machine has it without being asked, as it is on loopback. */
const usualApiListen = '127.0.0.1:7072';
/** Longer than a daemon needs to let calls under way finish. */
const childGraceMs = 10_000;

export const command: CommandModule = {
  define(sub) {
    sub
      .option('--nodes <count>', 'how many agents to start', wholeNumberFlag('--nodes', 1, 64), 1)
      .option(
        '--gpus <count>',
        'simulate this many GPUs on each node; default: the GPUs of this machine',
        wholeNumberFlag('--gpus', 0, 64),
      )
      .option(
        '--cpus <count>',
        'CPUs each node offers; default: all of this machine',
        wholeNumberFlag('--cpus', 1, 4_096),
      )
      .option('--data <dir>', 'data directory; default: MUSTER_DATA or ~/.local/share/muster')
      .option(
        '--port <port>',
        'port of the coordinator; 0: any free one',
        wholeNumberFlag('--port', 0, 65_535),
        7070,
      )
      .option(
        '--listen <host>',
        'address to serve on; 0.0.0.0 lets agents on other machines join, by TLS',
        listenHost,
        '127.0.0.1',
      )
      .option(
        '--advertise <host>',
        'name or address at which other machines reach this one; may be repeated; default: its own',
        advertisedHosts,
      );
    withAlertFlags(withOutsideFlags(sub)).option(
      '--http <host:port>',
      `its pages for Prometheus, or off; default ${coordinatorDefaults.httpListen}, or a free port where that is taken`,
      pageAddress('--http', coordinatorDefaults.httpListen),
    );
    sub.option(
      '--api <host:port>',
      `its HTTP API, or off; default ${usualApiListen}, or a free port where that is taken`,
      apiAddress,
    );
    sub.option(
      '--mount-root <dir[:ro]>',
      'also allow containers to mount this directory, besides your home and the working directory; may be repeated',
      collect,
    );
    sub
      .option('--detach', 'run in the background: return as soon as it serves; `muster down` stops it')
      .addOption(sub.createOption('--in-background').hideHelp());
    sub.addHelpText(
      'after',
      '\nCtrl-C, `muster down` or the end of the terminal stop the coordinator and the agents. Running jobs keep running, ' +
        'however long Muster is away, and the next `muster up` reattaches to them. Jobs whose spec names a `lease`, and ' +
        'those with tasks on other machines, pause when their lease ends.',
    );
  },
  run: up,
};

async function up(context: Context, flags: UpFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const dataDir = dataDirOf(flags, context);
  prepareDataDir(dataDir);
  if (flags.detach === true) {
    lockForUp(dataDir, environment.programName)();
    return upInBackground(context, dataDir, argumentsOf(flags, dataDir, context.environment.workingDir));
  }
  const unlock = lockForUp(dataDir, environment.programName);
  const stop = abortOnStopRequest(io);
  const children: SupervisedChild[] = [];
  const progress = startProgress(io.stderr, context.clock);
  const print = (sentence: string) => {
    progress.clear();
    void io.stderr.write(`${printable(sentence, { keepLines: true })}\n`).catch(() => {});
  };
  const start = (plan: Parameters<typeof superviseChild>[0]) => {
    const child = superviseChild(plan, context.clock, print);
    children.push(child);
    return child;
  };
  try {
    writeUpState(dataDir, null);
    if (flags.inBackground === true) keepLogSmall(upLogPath(dataDir), () => {});
    // 1. The coordinator.
    progress.show('starting the coordinator');
    const options = await upOptions(flags, dataDir, context.environment.workingDir, print);
    let listen = options.listen;
    const coordinator = start(coordinatorPlan(options, environment, () => listen));
    const address = await unlessStopped(coordinator.serving, stop.signal);
    if (address === null) return exitCodes.ok;
    listen = formatAddress({ host: flags.listen, port: parseAddress(address)?.port ?? flags.port });
    const unnoted = rememberLastUp(dataDir, environment);
    if (unnoted !== null) print(`${unnoted}; other calls need --data ${dataDir}`);

    const tokenFile = join(dataDir, 'admin.token');
    const credentials = { addr: address, tokenFile, data: dataDir };
    const caPath = readConnection(dataDir)?.caPath ?? null;
    return await withSession(context, credentials, async (session) => {
      // 2. The agents, all at once.
      const names = nodeNames(options);
      progress.show(`starting ${names.join(', ')}`);
      const agents = names.map((name) =>
        start(
          agentPlan(
            name,
            options,
            environment,
            { address, caPath },
            () => session.api,
            () => context.clock.wallMs(),
          ),
        ),
      );
      await unlessStopped(Promise.all(agents.map(({ serving }) => serving)), stop.signal);
      const nodes = await waitUntilOnline(session, names, stop.signal);
      progress.end();
      if (stop.signal.aborted) return exitCodes.ok;

      // 3. Until Ctrl-C.
      const { httpListen } = options;
      const { apiUrl = null } = readConnection(dataDir) ?? {};
      const logPath = flags.inBackground === true ? upLogPath(dataDir) : null;
      await io.stdout.write(
        welcomeText({ nodes, names, address, httpListen, apiUrl, dataDir, logPath, context }),
      );
      writeUpState(dataDir, address);
      await whenAborted(stop.signal);
      const active = await activeJobs(session);
      print(goodbyeText(active, environment.programName));
      return exitCodes.ok;
    });
  } finally {
    progress.end();
    // 4. Agents first: they part from a coordinator that still listens.
    const [coordinator, ...agents] = children;
    await Promise.all(agents.map((child) => child.stop(childGraceMs)));
    await coordinator?.stop(childGraceMs);
    stop.dispose();
    removeUpState(dataDir);
    unlock();
  }
}

/** The same call for a process in the background. */
function argumentsOf(flags: UpFlags, dataDir: string, workingDir: string): readonly string[] {
  const one = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [name, String(value)];
  const each = (name: string, values: readonly string[] = []) => values.flatMap((value) => [name, value]);
  return [
    'up',
    '--in-background',
    '--data',
    dataDir,
    ...one('--nodes', flags.nodes),
    ...one('--gpus', flags.gpus),
    ...one('--cpus', flags.cpus),
    ...one('--port', flags.port),
    ...one('--listen', flags.listen),
    ...each('--advertise', flags.advertise),
    ...coordinatorArguments(flags, workingDir),
    ...one('--http', flags.http),
    ...one('--api', flags.api),
    ...each('--mount-root', flags.mountRoot),
  ];
}

/** What the coordinator is told as it stands. */
function coordinatorArguments(flags: UpFlags, workingDir: string): readonly string[] {
  return [...outsideArguments(flags, workingDir), ...alertArguments(flags, workingDir)];
}

function dataDirOf(flags: UpFlags, { environment }: Context): string {
  const named = flags.data ?? environment.dataDir;
  return named === null ? environment.defaultDataDir : resolve(environment.workingDir, named);
}

async function upOptions(
  flags: UpFlags,
  dataDir: string,
  workingDir: string,
  print: (sentence: string) => void,
): Promise<UpOptions> {
  const usual = { anyPort: flags.port === 0, print };
  const pageAt = (address: string, whose: string) =>
    addressOfPage(address, { ...usual, what: `the metrics of ${whose}` });
  /** Port 0 as a port that stays when the coordinator is started again. */
  const chosen = async (address: string | null) => (address?.endsWith(':0') ? freeAddress(address) : address);
  return {
    dataDir,
    nodeCount: flags.nodes,
    // Several nodes cannot each have the same real GPUs.
    gpus: flags.gpus ?? (flags.nodes > 1 ? 0 : null),
    cpus: flags.cpus ?? null,
    listen: formatAddress({ host: flags.listen, port: flags.port }),
    advertise: flags.advertise ?? [],
    coordinatorArguments: coordinatorArguments(flags, workingDir),
    httpListen:
      flags.http === undefined
        ? await pageAt(coordinatorDefaults.httpListen, 'the coordinator')
        : await chosen(pageListen(flags.http, coordinatorDefaults.httpListen)),
    apiListen:
      flags.api === undefined
        ? await addressOfPage(usualApiListen, { ...usual, what: 'the HTTP API' })
        : await chosen(pageListen(flags.api, null)),
    // Several agents cannot share an address; Prometheus finds all of them through the coordinator.
    mountRoots: flags.mountRoot ?? [],
    metricsListen: flags.nodes > 1 ? null : await pageAt(agentDefaults.metricsListen, 'node-1'),
  };
}

function prepareDataDir(dataDir: string): void {
  try {
    makeDirectories(join(dataDir, 'agents'), 0o700);
  } catch (error) {
    throw new CliError(`cannot use the data directory ${dataDir}: ${messageOf(error)}`, {
      cause: error,
      hints: ['Name another one with --data DIR.'],
    });
  }
}

/** @returns null when asked to stop first */
async function unlessStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T | null> {
  return Promise.race([work, whenAborted(stop).then(() => null)]);
}

/** @returns all nodes the coordinator knows, once the named ones are online or have had their time */
async function waitUntilOnline(
  { api }: Session,
  names: readonly string[],
  stop: AbortSignal,
): Promise<readonly NodeView[]> {
  const deadline = AbortSignal.any([stop, AbortSignal.timeout(onlineWithinMs)]);
  for (;;) {
    const nodes = await api.listNodes();
    const online = new Set(nodes.filter(({ state }) => state === 'online').map(({ name }) => name));
    if (deadline.aborted || names.every((name) => online.has(name))) return nodes;
    await sleep(onlinePollMs);
  }
}
