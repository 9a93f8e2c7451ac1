/** Flag values from text, with errors that name the flag and what it takes. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { messageOf } from '@muster/common/errors';
import { formatDuration, parseDurationMs } from '@muster/common/spec/duration';
import { parseSizeMb, sizeForm } from '@muster/common/spec/size';
import type { GpuPrice } from '@muster/coordinator/options';
import type { Command } from 'commander';
import { hostOf, isLoopback } from './connection.ts';
import { fileErrorReason, usageError } from './errors.ts';

/** Commander hands over the typed text and the value so far. */
type FlagParser<T> = (typed: string) => T;

export function wholeNumberFlag(flag: string, min: number, max: number): FlagParser<number> {
  return (typed) => {
    const value = Number(typed);
    if (/^\d{1,15}$/.test(typed) && value >= min && value <= max) return value;
    throw usageError(`${flag} takes a whole number from ${min} to ${max}; got "${typed}"`);
  };
}

export function durationMs(flag: string, minMs: number, maxMs: number): FlagParser<number> {
  return (typed) => {
    const value = parseDurationMs(typed);
    if (value !== null && value >= minMs && value <= maxMs) return value;
    throw usageError(
      `${flag} takes a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 30s; got "${typed}"`,
    );
  };
}

/** @returns bytes */
export function sizeBytes(flag: string, minMb: number, maxMb: number): FlagParser<number> {
  return (typed) => {
    const megabytes = parseSizeMb(typed);
    if (megabytes !== null && megabytes >= minMb && megabytes <= maxMb) return megabytes * 1024 * 1024;
    throw usageError(`${flag} takes ${sizeForm}, from ${minMb}M to ${maxMb}M; got "${typed}"`);
  };
}

/**
 * Where to serve a page of metrics, or `off`; not null, of which commander makes an empty text. Only loopback addresses, as
 * nobody is asked for a password there.
 * @param example what the error suggests
 */
export function pageAddress(flag: string, example: string): FlagParser<string> {
  return (typed) => {
    if (typed === 'off') return typed;
    const host = hostOf(typed, { portMin: 0 });
    if (host === null)
      throw usageError(`${flag} takes HOST:PORT, such as ${example}, or off; got "${typed}"`);
    if (isLoopback(host)) return typed;
    throw usageError(
      `${flag} serves on this machine only, such as ${example}; ${host} is open to others`,
      'A proxy with a password, or an SSH tunnel, leads there from other machines.',
    );
  };
}

/** Where to serve the HTTP API, or `off`. Who may call shows a token there, so it need not be loopback. */
export function apiAddress(typed: string): string {
  if (typed === 'off' || hostOf(typed, { portMin: 0 }) !== null) return typed;
  throw usageError(`--api takes HOST:PORT, such as 127.0.0.1:7072, or off; got "${typed}"`);
}

/** @param typed what `pageAddress` or `apiAddress` let pass @returns null: it is not served */
export function pageListen(typed: string | undefined, usual: string | null): string | null {
  const chosen = typed ?? usual;
  return chosen === 'off' ? null : chosen;
}

/** For flags that may be given more than once. */
export function collect(typed: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), typed];
}

/** `TYPE=USD` or `node:NAME=USD`: each for an hour of a GPU. May be given more than once. */
export function priceList(typed: string, earlier: readonly GpuPrice[] | undefined): readonly GpuPrice[] {
  const [, node, name = '', usd = ''] =
    /^(node:)?([\w][\w .-]{0,99})=(\d{1,6}(?:\.\d{1,6})?)$/.exec(typed) ?? [];
  if (name === '')
    throw usageError(
      `--prices takes the price of an hour of a GPU in USD, such as H100=8.00 or node:gpu-7=1.20; got "${typed}"`,
    );
  const price: GpuPrice = { of: node === undefined ? 'type' : 'node', name, usdPerHour: Number(usd) };
  if (earlier?.some((each) => each.of === price.of && each.name === name) === true)
    throw usageError(`--prices has two prices of ${name}`);
  return [...(earlier ?? []), price];
}

export interface OutputFlags {
  readonly output?: 'table' | 'json';
}

export function withOutput(command: Command): Command {
  const option = command
    .createOption('-o, --output <format>', "json: the API's JSON, for programs")
    .choices(['table', 'json']);
  return command.addOption(option);
}

/** @throws {CliError} when it cannot be read */
export function readSecretFile(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(`${flag}: cannot read ${path}: ${fileErrorReason(error) ?? messageOf(error)}`);
  }
}

/** Without user and password: every user of the machine can read the arguments of a process. */
export function natsUrl(typed: string): string {
  if (typed.includes('@')) {
    throw usageError(
      '--nats takes no password, because other users of this machine can read what a program was started with',
      'Write `user:password`, a token, or what nsc gave you, into a file of mode 0600: --nats-credentials FILE',
    );
  }
  if (/^(?:nats|tls):\/\/[^\s/]+$/.test(typed)) return typed;
  throw usageError(`--nats takes a URL such as nats://127.0.0.1:4222; got "${typed}"`);
}

/** Without user and password, as with NATS. */
export function prometheusUrl(typed: string): string {
  if (/^https?:\/\/[^\s@?#]+$/.test(typed)) return typed;
  throw usageError(
    `--prometheus-url takes a URL without a password, such as http://127.0.0.1:9090; got "${typed.replace(/\/\/.*@/, '//')}"`,
  );
}

export function otlpUrl(typed: string): string {
  if (/^https?:\/\/[^\s@?#]+$/.test(typed)) return typed;
  throw usageError(
    `--otlp takes a URL without a password, such as http://127.0.0.1:4318 (headers: OTEL_EXPORTER_OTLP_HEADERS); got "${typed.replace(/\/\/.*@/, '//')}"`,
  );
}

/** Reads a share. @throws {CliError} unless it is a number from 0 to 1 */
export function ratio(flag: string): (typed: string) => number {
  return (typed) => {
    const value = /^\d*\.?\d+$/.test(typed) ? Number(typed) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    throw usageError(`${flag} takes a number from 0 to 1, such as 0.1; got "${typed}"`);
  };
}

export function withConfigFlag(command: Command): Command {
  return command.option(
    '--config <file>',
    'YAML file with these flags as keys, such as log_level: debug; flags on the command line replace its keys',
  );
}

export function withLogLevel(command: Command): Command {
  const option = command
    .createOption('--log-level <level>', 'how much to log on stderr; default info')
    .choices(['debug', 'info', 'warn', 'error', 'silent']);
  return command.addOption(option);
}

/** A host alone; the port is another flag. */
export function listenHost(typed: string): string {
  const host = withoutBrackets(typed);
  if (isHost(host)) return host;
  throw usageError(
    `--listen takes an address of this machine without a port, such as 0.0.0.0; got "${typed}"`,
  );
}

/** One name or address of this machine more, without a port: it is the one that is listened on. */
export function advertisedHosts(typed: string, earlier: readonly string[] | undefined): readonly string[] {
  const host = withoutBrackets(typed);
  if (isHost(host)) return [...(earlier ?? []), host];
  throw usageError(`--advertise takes a name or an address without a port, such as gpu-head; got "${typed}"`);
}

function withoutBrackets(typed: string): string {
  return /^\[(.+)\]$/.exec(typed)?.[1] ?? typed;
}

function isHost(text: string): boolean {
  return isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(text);
}
