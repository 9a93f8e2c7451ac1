/** Sinks over HTTP: webhooks with a signature, and those that speak as Slack does. */
import { createHmac } from 'node:crypto';
import { type AlertNotification, titleOf } from './notification.ts';
import { post, type SafeAnswer, type SafeTarget } from './safeRequest.ts';
import { type AlertSink, RefusedNotification } from './sink.ts';

/**
 * Posts JSON. `X-Muster-Signature` is `t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY` with the secret. `X-Muster-Delivery` is the
 * same in each try.
 * @param secret null: what is sent is not signed
 */
export function webhookSink(target: SafeTarget, secret: string | null, wallMs: () => number): AlertSink {
  return {
    kind: 'webhook',
    shown: shownUrl(target),
    identity: target.url.href,
    async deliver(notification, abort) {
      const body = JSON.stringify(webhookBody(notification));
      const seconds = Math.floor(wallMs() / 1_000);
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'muster',
        'x-muster-delivery': notification.id,
        ...(secret === null ? {} : { 'x-muster-signature': signature(secret, seconds, body) }),
      };
      requireTaken(await post(target, body, headers, abort));
    },
  };
}

export function signature(secret: string, seconds: number, body: string): string {
  const hex = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  return `t=${seconds},v1=${hex}`;
}

function webhookBody({ firedAtMs, atMs, ...notification }: AlertNotification) {
  return { ...notification, firedAt: timestampOf(firedAtMs), at: timestampOf(atMs) };
}

/** An incoming webhook of Slack, or of what understands the same: Mattermost, Rocket.Chat, Discord with `/slack`. */
export function slackSink(target: SafeTarget): AlertSink {
  return {
    kind: 'slack',
    // The path of such an address is its password.
    shown: target.url.host,
    identity: target.url.href,
    async deliver(notification, abort) {
      const body = JSON.stringify({ text: slackText(notification) });
      requireTaken(await post(target, body, { 'content-type': 'application/json' }, abort));
    },
  };
}

/** `&`, `<` and `>` would be read as markup, and `<!channel>` would call everybody. */
function slackText(notification: AlertNotification): string {
  const escaped = (text: string) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `*${escaped(titleOf(notification))}*\n${escaped(notification.message)}`;
}

/**
 * @throws {RefusedNotification} for an answer that another try would only repeat: the request is wrong, or a redirect
 * @throws {Error} for one that may become better
 */
export function requireTaken({ status, text }: SafeAnswer): void {
  if (status >= 200 && status < 300) return;
  const answer = `it answered ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}`;
  if (status >= 300 && status < 400) throw new RefusedNotification(`${answer}; redirects are not followed`);
  // Too many requests, a timeout, and tokens that somebody has to fix.
  const mayPass = status >= 500 || [401, 403, 404, 408, 425, 429].includes(status);
  throw mayPass ? new Error(answer) : new RefusedNotification(answer);
}

function shownUrl({ url }: SafeTarget): string {
  return `${url.protocol}//${url.host}`;
}

export function timestampOf(ms: number): string {
  return new Date(ms).toISOString();
}
