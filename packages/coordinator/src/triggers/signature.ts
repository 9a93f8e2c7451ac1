/** The signatures of webhooks, as standardwebhooks.com defines them: HMAC-SHA256 of id, time and body, with a secret of the trigger. Pure. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RandomBytes } from '@muster/common/ids';

const secretBytes = 32;
const prefix = 'whsec_';

export function newWebhookSecret(random: RandomBytes): string {
  return `${prefix}${Buffer.from(random(secretBytes)).toString('base64')}`;
}

export interface SignedDelivery {
  readonly id: string;
  /** As it was sent: seconds. */
  readonly timestamp: string;
  readonly body: Uint8Array;
}

/** `v1,BASE64`, as a sender writes it. */
export function signatureOf(secret: string, { id, timestamp, body }: SignedDelivery): string {
  const key = Buffer.from(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret, 'base64');
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
  return `v1,${mac.digest('base64')}`;
}

/** @param shown what was sent: of several, separated by spaces, one must be right. The time that it takes says nothing of which */
export function isSignedBy(secret: string, delivery: SignedDelivery, shown: string): boolean {
  const right = Buffer.from(signatureOf(secret, delivery));
  let isRight = false;
  for (const each of shown.split(' ').slice(0, 10)) {
    const sent = Buffer.from(each);
    if (sent.length === right.length && timingSafeEqual(sent, right)) isRight = true;
  }
  return isRight;
}
