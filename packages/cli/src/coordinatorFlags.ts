/** The flags of `muster coordinator`, which are the keys of its configuration file. */
import { marginMsMin } from '@muster/coordinator/leases/leases';
import { coordinatorDefaults as defaults } from '@muster/coordinator/options';
import { eventsKeptMsMin } from '@muster/coordinator/reconcilers/retention';
import type { Command } from 'commander';
import { type AlertFlags, withAlertFlags } from './alertFlags.ts';
import {
  advertisedHosts,
  apiAddress,
  durationMs,
  pageAddress,
  sizeBytes,
  wholeNumberFlag,
  withConfigFlag,
  withLogLevel,
} from './flags.ts';
import { type OidcFlags, withOidcFlags } from './oidcFlags.ts';
import { type OutsideFlags, withOutsideFlags } from './outsideFlags.ts';

export interface CoordinatorFlags extends OidcFlags, AlertFlags, OutsideFlags {
  readonly config?: string;
  readonly data: string;
  readonly listen?: string;
  readonly advertise?: readonly string[];
  readonly http?: string;
  readonly api?: string;
  readonly telemetryMemory?: number;
  readonly reserveMb?: number;
  readonly queueMb?: number;
  readonly logBudget?: number;
  readonly metricsBudget?: number;
  readonly logCap?: number;
  readonly logRate?: number;
  readonly keepEvents?: number;
  readonly keepEventsSize?: number;
  readonly keepJobs?: number;
  readonly keepJobsMax?: number;
  readonly heartbeat?: number;
  readonly lease?: number;
  readonly localLeases?: 'on' | 'off';
  readonly credentialLifetime?: number;
  readonly fenceTime?: number;
  readonly fenceMargin?: number;
  readonly fenceCommand?: string;
  readonly logLevel?: string;
}

const mebibyte = 1024 * 1024;
const terabytesMb = 1024 * 1024 * 1024;
const daySeconds = 24 * 60 * 60;
const keepMsMax = 3_650 * daySeconds * 1_000;

export function withCoordinatorFlags(sub: Command): void {
  withConfigFlag(sub)
    .requiredOption('--data <dir>', 'data directory with the store; one coordinator per directory')
    .option(
      '--listen <host:port>',
      `address to serve on; TLS unless it is loopback; default ${defaults.listen}`,
    )
    .option(
      '--advertise <host>',
      'name or address at which other machines reach this one; may be repeated; default: its own',
      advertisedHosts,
    )
    .option(
      '--http <host:port>',
      `loopback address of the pages for Prometheus, or off; default ${defaults.httpListen}`,
      pageAddress('--http', defaults.httpListen),
    )
    .option(
      '--api <host:port>',
      'address of the HTTP API, or off; TLS as gRPC has it, so beyond loopback only with such a --listen; default off',
      apiAddress,
    )
    .option(
      '--telemetry-memory <size>',
      `memory for GPU readings of the last hours; default ${defaults.telemetryBytes / mebibyte}M`,
      sizeBytes('--telemetry-memory', 1, 1024 * 1024),
    );
  withAlertFlags(withOutsideFlags(sub))
    .option(
      '--reserve-mb <size>',
      `disk space in MB to keep free; default ${defaults.reserveBytes / mebibyte}`,
      wholeNumberFlag('--reserve-mb', 0, 1_000_000_000),
    )
    .option(
      '--queue-mb <size>',
      `specs of queued jobs in MB, of all users together; one user may have half of it; default ${defaults.queueBytes / mebibyte}`,
      wholeNumberFlag('--queue-mb', 1, 1_000_000),
    )
    .option(
      '--log-budget <size>',
      'disk space for the output of all jobs; default: a fifth of the disk, 50G at most',
      sizeBytes('--log-budget', 1, terabytesMb),
    )
    .option(
      '--log-cap <size>',
      'size limit of the output of one task, of which beginning and end are kept; default: a quarter of the budget, 1G at most',
      sizeBytes('--log-cap', 1, terabytesMb),
    )
    .option(
      '--log-rate <size>',
      `sustained rate at which output of one task is accepted, per second; default ${defaults.logRateBytes / mebibyte}M`,
      sizeBytes('--log-rate', 1, terabytesMb),
    )
    .option(
      '--metrics-budget <size>',
      'disk space for the metrics that jobs print; default: a fiftieth of the disk, 5G at most',
      sizeBytes('--metrics-budget', 1, terabytesMb),
    )
    .option(
      '--keep-events <duration>',
      'how long events and request ids are kept, at least 7d; default 30d',
      durationMs('--keep-events', eventsKeptMsMin, keepMsMax),
    )
    .option(
      '--keep-events-size <size>',
      'disk space for events older than 7d; default: a fiftieth of the disk, 5G at most',
      sizeBytes('--keep-events-size', 1, terabytesMb),
    )
    .option(
      '--keep-jobs <duration>',
      'how long ended jobs and their output are kept; default 90d',
      durationMs('--keep-jobs', 3_600_000, keepMsMax),
    )
    .option(
      '--keep-jobs-max <count>',
      `how many ended jobs are kept at most; default ${defaults.keep.jobsMax}`,
      wholeNumberFlag('--keep-jobs-max', 0, 100_000_000),
    )
    .option(
      '--heartbeat <duration>',
      'how often agents report; default 5s',
      durationMs('--heartbeat', 100, 60_000),
    )
    .option(
      '--lease <duration>',
      'how long tasks run without contact with the coordinator before they are frozen; default 60s',
      durationMs('--lease', 1_000, daySeconds * 1_000),
    )
    .addOption(
      sub
        .createOption(
          '--local-leases <choice>',
          'off: tasks on this machine itself keep running while Muster is away, without a lease; default on',
        )
        .choices(['on', 'off']),
    )
    .option(
      '--credential-lifetime <duration>',
      'lifetime of the credential of an agent; at least twice --lease; default 7d',
      durationMs('--credential-lifetime', 2_000, 3_650 * daySeconds * 1_000),
    )
    .option(
      '--fence-time <duration>',
      'what a node takes at most to freeze a task; default 5s',
      durationMs('--fence-time', 1_000, 600_000),
    )
    .option(
      '--fence-margin <duration>',
      'from the end of an attempt on a lost node to the next one; default 5s',
      durationMs('--fence-margin', marginMsMin, 600_000),
    )
    .option(
      '--fence-command <command>',
      'run by sh for each silent node with tasks, with MUSTER_NODE and MUSTER_NODE_ADDRESSES; exits 0 once the node ' +
        'is dead for certain',
    );
  withOidcFlags(sub);
  withLogLevel(sub);
}
