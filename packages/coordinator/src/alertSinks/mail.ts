/** E-mail by SMTP. The module loads the library for it, so it is imported only where a server is configured. */
import { isIP } from 'node:net';
import { MusterError } from '@muster/common/errors';
import { createTransport } from 'nodemailer';
import { type AlertNotification, titleOf } from './notification.ts';
import { pinnedAddress, requestTimeoutMs, withRemedy } from './safeRequest.ts';
import { type AlertSink, RefusedNotification } from './sink.ts';

export interface MailSettings {
  /** `smtp://host[:587]`, which must offer STARTTLS unless private addresses are allowed, or `smtps://host[:465]`. */
  readonly url: string;
  readonly from: string;
  readonly to: readonly string[];
  /** `user:password`. null: none. */
  readonly credentials: string | null;
  readonly allowsPrivate: boolean;
  /** PEM of every authority that is trusted. null: those of this machine. */
  readonly ca: readonly string[] | null;
}

const replyDeadlineMs = 4 * requestTimeoutMs;

/** @throws {MusterError} `invalid` */
export function mailSink(settings: MailSettings, clusterId: string): AlertSink {
  const { host, port, isSecure } = serverOf(settings.url);
  const { from, to, credentials, allowsPrivate, ca } = settings;
  const colon = credentials?.indexOf(':') ?? -1;
  const auth =
    credentials === null
      ? {}
      : { auth: { user: credentials.slice(0, colon), pass: credentials.slice(colon + 1) } };
  return {
    kind: 'smtp',
    shown: `${host}:${port}`,
    identity: `${host}:${port} ${[...to].sort().join(' ')}`,
    async deliver(notification, abort) {
      const { address } = await pinnedAddress(host, allowsPrivate);
      const transport = createTransport({
        host: address,
        port,
        secure: isSecure,
        requireTLS: !isSecure && !allowsPrivate,
        tls: { servername: isIP(host) === 0 ? host : '', ...(ca === null ? {} : { ca }) },
        ...auth,
        connectionTimeout: requestTimeoutMs,
        greetingTimeout: requestTimeoutMs,
        socketTimeout: replyDeadlineMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      });
      const stop = () => transport.close();
      abort.addEventListener('abort', stop, { once: true });
      try {
        await transport.sendMail(mailOf(notification, { from, to, clusterId }));
      } catch (error) {
        throw isPermanent(error)
          ? new RefusedNotification((error as Error).message)
          : withRemedy(error as Error, host);
      } finally {
        abort.removeEventListener('abort', stop);
        transport.close();
      }
    },
  };
}

function serverOf(text: string): { host: string; port: number; isSecure: boolean } {
  try {
    const { protocol, hostname, port } = new URL(text);
    const isSecure = protocol === 'smtps:';
    if ((isSecure || protocol === 'smtp:') && hostname !== '')
      return {
        host: hostname.replace(/^\[|\]$/g, ''),
        port: Number(port || (isSecure ? 465 : 587)),
        isSecure,
      };
  } catch {
    // As for another scheme.
  }
  throw new MusterError(
    'invalid',
    'the address of the mail server does not have the form smtp://host:587 or smtps://host',
  );
}

/** Line ends in a header would begin another one; the library folds them, and here none is left. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 200);
}

function mailOf(
  notification: AlertNotification,
  { from, to, clusterId }: Pick<MailSettings, 'from' | 'to'> & { readonly clusterId: string },
) {
  const { id, alert, severity, message, subject, subjectName, project, owner, firedAtMs, labels } =
    notification;
  const facts: readonly (readonly [string, string])[] = [
    ['Alert', alert],
    ['Severity', severity],
    ['For', subject === subjectName ? subject : `${subjectName} (${subject})`],
    ...(project === null ? [] : [['Project', project] as const]),
    ...(owner === null ? [] : [['Set by', owner] as const]),
    ['Since', new Date(firedAtMs).toISOString()],
    ...Object.entries(labels).map(([name, value]) => [name, value] as const),
  ];
  return {
    from,
    to,
    subject: oneLine(titleOf(notification)),
    text: `${message}\n\n${facts.map(([name, value]) => `${name}: ${value}`).join('\n')}\n`,
    // The same in each try.
    messageId: `<${id}@muster-${clusterId}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Muster-Episode': oneLine(notification.episode) },
  };
}

/** A server that answers the message itself with 5xx will do so again. */
function isPermanent(error: unknown): boolean {
  const { responseCode, command } = error as { responseCode?: number; command?: string };
  return (
    responseCode !== undefined &&
    responseCode >= 500 &&
    command?.startsWith('AUTH') !== true &&
    command !== 'CONN'
  );
}
