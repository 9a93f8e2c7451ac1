/** The flags of alerts, of `muster coordinator` and `muster up`. */
import { resolve } from 'node:path';
import { type AlertSinkSettings, hasSinks } from '@muster/common/alertSinkSettings';
import { type BuiltInAlertName, builtInAlertNames, isBuiltInAlert } from '@muster/common/builtInAlerts';
import { closest } from '@muster/common/spec/suggest';
import type { Command } from 'commander';
import { usageError } from './errors.ts';
import { collect, readSecretFile } from './flags.ts';

export interface AlertFlags {
  readonly builtinAlerts?: readonly BuiltInAlertName[];
  readonly alertWebhook?: string;
  readonly alertWebhookSecret?: string;
  readonly alertSlack?: string;
  readonly alertAlertmanager?: string;
  readonly alertSmtp?: string;
  readonly alertSmtpCredentials?: string;
  readonly alertMailFrom?: string;
  readonly alertMailTo?: readonly string[];
  readonly alertCa?: string;
  readonly alertPrivate?: 'on' | 'off';
}

export function withAlertFlags(sub: Command): Command {
  return sub
    .option(
      '--builtin-alerts <names>',
      'built-in alerts that are on: all, none, or names, separated by commas; all,-gpu_low is all but one; default: all if ' +
        'alerts go anywhere, else none',
      builtInAlertsFrom,
    )
    .option('--alert-webhook <url>', 'https address that gets each alert as JSON')
    .option('--alert-webhook-secret <file>', 'file with the secret that signs what the webhook gets')
    .option('--alert-slack <file>', 'file with the address of an incoming webhook of Slack')
    .option('--alert-alertmanager <url>', 'Alertmanager that gets each alert, without /api/v2')
    .option('--alert-smtp <url>', 'mail server for alerts: smtp://host:587 or smtps://host')
    .option('--alert-smtp-credentials <file>', 'file with USER:PASSWORD for the mail server')
    .option('--alert-mail-from <address>', 'sender of mails about alerts')
    .option('--alert-mail-to <address>', 'recipient of mails about alerts; may be repeated', collect)
    .option('--alert-ca <file>', 'certificates of CAs that alerts may trust beside the public ones, as PEM')
    .addOption(
      sub
        .createOption(
          '--alert-private <choice>',
          'on: alerts may go to addresses of private networks and over http; default: off',
        )
        .choices(['on', 'off']),
    );
}

/** @throws {CliError} for a name that is none */
export function builtInAlertsFrom(typed: string): readonly BuiltInAlertName[] {
  const on = new Set<BuiltInAlertName>();
  for (const word of typed.split(',').map((each) => each.trim())) {
    const isOff = word.startsWith('-');
    const name = isOff ? word.slice(1) : word;
    if (name === 'all' && !isOff) for (const each of builtInAlertNames) on.add(each);
    else if (isBuiltInAlert(name) && isOff) on.delete(name);
    else if (isBuiltInAlert(name)) on.add(name);
    else if (word !== 'none') {
      const meant = closest(name, builtInAlertNames);
      throw usageError(
        `--builtin-alerts takes all, none, or names of built-in alerts; got "${word}"`,
        meant === null ? `They are ${builtInAlertNames.join(', ')}.` : `Did you mean ${meant}?`,
      );
    }
  }
  return [...on];
}

/** @throws {CliError} for a file that cannot be read, and flags that lack others */
export function alertSettings(
  flags: AlertFlags,
  workingDir: string,
): { readonly sinks: AlertSinkSettings; readonly builtIn: readonly BuiltInAlertName[] } {
  const secretOf = (flag: string, path: string | undefined) =>
    path === undefined ? null : readSecretFile(flag, resolve(workingDir, path)).trim();
  const { alertWebhook: url, alertSmtp, alertMailFrom: from, alertMailTo: to = [] } = flags;
  if (alertSmtp !== undefined && (from === undefined || to.length === 0))
    throw usageError('--alert-smtp needs --alert-mail-from and --alert-mail-to');
  const credentials = secretOf('--alert-smtp-credentials', flags.alertSmtpCredentials);
  if (credentials !== null && !/^[^:\s]+:\S/.test(credentials))
    throw usageError('--alert-smtp-credentials names a file with USER:PASSWORD');
  const sinks: AlertSinkSettings = {
    webhook:
      url === undefined
        ? null
        : { url, secret: secretOf('--alert-webhook-secret', flags.alertWebhookSecret) },
    slackUrl: secretOf('--alert-slack', flags.alertSlack),
    alertmanagerUrl: flags.alertAlertmanager ?? null,
    mail: alertSmtp === undefined || from === undefined ? null : { url: alertSmtp, from, to, credentials },
    allowsPrivate: flags.alertPrivate === 'on',
    ca: secretOf('--alert-ca', flags.alertCa),
  };
  return { sinks, builtIn: flags.builtinAlerts ?? (hasSinks(sinks) ? builtInAlertNames : []) };
}

/** The same flags for another process. Paths become absolute. */
export function alertArguments(flags: AlertFlags, workingDir: string): readonly string[] {
  const one = (name: string, value: string | undefined) => (value === undefined ? [] : [name, value]);
  const file = (name: string, path: string | undefined) =>
    one(name, path === undefined ? undefined : resolve(workingDir, path));
  const builtIn = flags.builtinAlerts;
  return [
    ...one('--builtin-alerts', builtIn?.length === 0 ? 'none' : builtIn?.join(',')),
    ...one('--alert-webhook', flags.alertWebhook),
    ...file('--alert-webhook-secret', flags.alertWebhookSecret),
    ...file('--alert-slack', flags.alertSlack),
    ...one('--alert-alertmanager', flags.alertAlertmanager),
    ...one('--alert-smtp', flags.alertSmtp),
    ...file('--alert-smtp-credentials', flags.alertSmtpCredentials),
    ...one('--alert-mail-from', flags.alertMailFrom),
    ...(flags.alertMailTo ?? []).flatMap((address) => ['--alert-mail-to', address]),
    ...file('--alert-ca', flags.alertCa),
    ...one('--alert-private', flags.alertPrivate),
  ];
}
