/** Flags of a coordinator about what is outside of Muster, such as NATS, Prometheus, directories of data and prices: also those of `muster up`. */
import { resolve } from 'node:path';
import { type GpuPrice, traceRatioDefault } from '@muster/coordinator/options';
import type { Command } from 'commander';
import { collect, natsUrl, otlpUrl, priceList, prometheusUrl, ratio, wholeNumberFlag } from './flags.ts';

export interface OutsideFlags {
  readonly nats?: string;
  readonly natsCredentials?: string;
  readonly natsCa?: string;
  readonly natsReplicas?: number;
  readonly natsSubmit?: boolean;
  readonly prometheusUrl?: string;
  readonly otlp?: string;
  readonly traceRatio?: number;
  readonly prices?: readonly GpuPrice[];
  readonly watchDir?: readonly string[];
}

export function withOutsideFlags(command: Command): Command {
  return command
    .option(
      '--prometheus-url <url>',
      'Prometheus that scrapes this cluster, for older metrics; such as http://127.0.0.1:9090',
      prometheusUrl,
    )
    .option(
      '--otlp <url>',
      'collector of OpenTelemetry to send traces of jobs to, over HTTP; such as http://127.0.0.1:4318',
      otlpUrl,
    )
    .option(
      '--trace-ratio <ratio>',
      `share of the jobs that are traced, 0 to 1, unless a submit brings a traceparent; default ${traceRatioDefault}`,
      ratio('--trace-ratio'),
    )
    .option(
      '--prices <type=usd>',
      'what an hour of a GPU costs: H100=8.00, or node:NAME=1.20; may be repeated',
      priceList,
    )
    .option(
      '--watch-dir <dir>',
      'directory of this machine below which triggers may watch for new data; may be repeated',
      collect,
    )
    .option(
      '--nats <url>',
      'also publish events to this NATS JetStream, such as nats://127.0.0.1:4222',
      natsUrl,
    )
    .option(
      '--nats-credentials <file>',
      'file with its credentials: `user:password`, a token, or a file of nsc',
    )
    .option('--nats-ca <file>', 'CA certificate of NATS, PEM; default: those that the system trusts')
    .option(
      '--nats-replicas <count>',
      'copies of the stream that is made in a cluster of NATS; default 1',
      wholeNumberFlag('--nats-replicas', 1, 5),
    )
    .option(
      '--nats-submit',
      'also take submits as requests through NATS, each with the token of a user; default: not',
    );
}

/** The same flags for another process. Paths become absolute. */
export function outsideArguments(flags: OutsideFlags, workingDir: string): readonly string[] {
  const one = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [name, String(value)];
  const file = (name: string, path: string | undefined) =>
    one(name, path === undefined ? undefined : resolve(workingDir, path));
  return [
    ...one('--prometheus-url', flags.prometheusUrl),
    ...one('--otlp', flags.otlp),
    ...one('--trace-ratio', flags.traceRatio),
    ...(flags.prices ?? []).flatMap(({ of, name, usdPerHour }) => [
      '--prices',
      `${of === 'node' ? 'node:' : ''}${name}=${usdPerHour}`,
    ]),
    ...(flags.watchDir ?? []).flatMap((dir) => file('--watch-dir', dir)),
    ...one('--nats', flags.nats),
    ...file('--nats-credentials', flags.natsCredentials),
    ...file('--nats-ca', flags.natsCa),
    ...one('--nats-replicas', flags.natsReplicas),
    ...(flags.natsSubmit === true ? ['--nats-submit'] : []),
  ];
}
