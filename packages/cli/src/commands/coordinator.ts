import { resolve } from 'node:path';
import {
  type CoordinatorOptions,
  coordinatorDefaults as defaults,
  traceRatioDefault,
} from '@muster/coordinator/options';
import { alertSettings } from '../alertFlags.ts';
import { withConfigFile } from '../config/configFile.ts';
import type { CommandModule, Context } from '../context.ts';
import { type CoordinatorFlags, withCoordinatorFlags } from '../coordinatorFlags.ts';
import { runDaemon } from '../daemon.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { pageListen, readSecretFile } from '../flags.ts';
import { oidcSettings } from '../oidcFlags.ts';

const mebibyte = 1024 * 1024;

export const command: CommandModule = {
  define: withCoordinatorFlags,
  withConfigFile,
  run: runCoordinatorCommand,
};

function runCoordinatorCommand(context: Context, flags: CoordinatorFlags): Promise<ExitCode> {
  return runDaemon(context, async () => {
    const options = coordinatorOptions(flags, context.environment.workingDir);
    const { runCoordinator } = await import('@muster/coordinator/main');
    const { address, close } = await runCoordinator(options);
    return { address, close, closed: new Promise<never>(() => {}) };
  });
}

function coordinatorOptions(flags: CoordinatorFlags, workingDir: string): CoordinatorOptions {
  const heartbeatIntervalMs = flags.heartbeat ?? defaults.heartbeatIntervalMs;
  const leaseMs = flags.lease ?? defaults.leaseMs;
  // One heartbeat may get lost without a node losing its lease.
  if (leaseMs < 2 * heartbeatIntervalMs) {
    throw usageError(
      '--lease has to be at least twice --heartbeat, so that one lost heartbeat costs nothing',
    );
  }
  if (flags.natsSubmit === true && flags.nats === undefined)
    throw usageError('--nats-submit needs the NATS to take submits from: --nats URL');
  const alerts = alertSettings(flags, workingDir);
  return {
    dataDir: resolve(workingDir, flags.data),
    configPath: flags.config === undefined ? defaults.configPath : resolve(workingDir, flags.config),
    listen: flags.listen ?? defaults.listen,
    advertise: flags.advertise ?? defaults.advertise,
    httpListen: pageListen(flags.http, defaults.httpListen),
    apiListen: pageListen(flags.api, defaults.apiListen),
    telemetryBytes: flags.telemetryMemory ?? defaults.telemetryBytes,
    prices: flags.prices ?? defaults.prices,
    prometheusUrl: flags.prometheusUrl ?? defaults.prometheusUrl,
    watchDirs: (flags.watchDir ?? defaults.watchDirs).map((dir) => resolve(workingDir, dir)),
    otlp: otlpOptions(flags),
    natsUrl: flags.nats ?? defaults.natsUrl,
    natsCredentials:
      flags.natsCredentials === undefined
        ? defaults.natsCredentials
        : readSecretFile('--nats-credentials', resolve(workingDir, flags.natsCredentials)),
    builtInAlerts: alerts.builtIn,
    alertSinks: alerts.sinks,
    natsCa:
      flags.natsCa === undefined
        ? defaults.natsCa
        : readSecretFile('--nats-ca', resolve(workingDir, flags.natsCa)),
    natsSubmit: flags.natsSubmit ?? defaults.natsSubmit,
    natsReplicas: flags.natsReplicas ?? defaults.natsReplicas,
    queueBytes: flags.queueMb === undefined ? defaults.queueBytes : flags.queueMb * mebibyte,
    reserveBytes: flags.reserveMb === undefined ? defaults.reserveBytes : flags.reserveMb * mebibyte,
    logBudgetBytes: flags.logBudget ?? defaults.logBudgetBytes,
    logCapBytes: flags.logCap ?? defaults.logCapBytes,
    metricsBudgetBytes: flags.metricsBudget ?? defaults.metricsBudgetBytes,
    logRateBytes: flags.logRate ?? defaults.logRateBytes,
    keep: {
      eventsMs: flags.keepEvents ?? defaults.keep.eventsMs,
      eventsBytes: flags.keepEventsSize ?? defaults.keep.eventsBytes,
      jobsMs: flags.keepJobs ?? defaults.keep.jobsMs,
      jobsMax: flags.keepJobsMax ?? defaults.keep.jobsMax,
    },
    heartbeatIntervalMs,
    credentialLifetimeMs: flags.credentialLifetime ?? defaults.credentialLifetimeMs,
    leaseMs,
    localLeases: flags.localLeases === undefined ? defaults.localLeases : flags.localLeases === 'on',
    fenceMs: flags.fenceTime ?? defaults.fenceMs,
    fenceMarginMs: flags.fenceMargin ?? defaults.fenceMarginMs,
    clockRateError: defaults.clockRateError,
    fenceCommand: flags.fenceCommand ?? defaults.fenceCommand,
    oidc: oidcSettings(flags),
    logLevel: flags.logLevel ?? defaults.logLevel,
  };
}

/** @throws {CliError} when traces are asked for that go nowhere */
function otlpOptions({ otlp, traceRatio }: CoordinatorFlags): CoordinatorOptions['otlp'] {
  if (otlp !== undefined) return { url: otlp, ratio: traceRatio ?? traceRatioDefault };
  if (traceRatio === undefined) return defaults.otlp;
  throw usageError('--trace-ratio needs --otlp, which says where traces go');
}
