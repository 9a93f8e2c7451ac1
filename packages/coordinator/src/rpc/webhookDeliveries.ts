/**
 * Deliveries to triggers by webhook: whoever has the secret of a trigger may fire it. A delivery has an id, by which it is carried out
 * once however often it arrives, and a time, without which an old one could be sent again once its id is forgotten.
 */
import { createHash } from 'node:crypto';
import { MusterError } from '@muster/common/errors';
import type { Gate } from '../auth/gate.ts';
import type { SecretVault } from '../secrets/vault.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { isSignedBy } from '../triggers/signature.ts';
import { type TriggerRunner, webhookSecretName } from '../triggers/triggerRunner.ts';
import { Requests } from './requests.ts';

/** How far the time of a delivery may be from that of the coordinator. */
const windowMs = 5 * 60_000;

export interface WebhookDelivery {
  readonly trigger: string;
  /** null: the header is missing. */
  readonly id: string | null;
  readonly timestamp: string | null;
  readonly signature: string | null;
  readonly body: Uint8Array;
  readonly peer: string | null;
}

export interface DeliveryAnswer {
  readonly trigger: string;
  /** The run that it has started. null: none, or none yet. */
  readonly run: string | null;
  /** It was carried out before. */
  readonly repeated: boolean;
}

/** @throws {MusterError} `unauthenticated` for whoever does not show that they have the secret */
export type DeliverWebhook = (delivery: WebhookDelivery) => Promise<DeliveryAnswer>;

export interface WebhookParts {
  readonly state: Pick<ClusterState, 'pipelines'>;
  readonly store: Pick<Store, 'readRequest'>;
  readonly vault: Pick<SecretVault, 'read'>;
  readonly gate: Pick<Gate, 'refusals'>;
  readonly triggers: Pick<TriggerRunner, 'fireByWebhook'>;
  readonly wallMs: () => number;
}

export function webhookDeliveries(parts: WebhookParts): DeliverWebhook {
  const requests = new Requests(parts.store);

  return async (delivery) => {
    const trigger = await signedFor(parts, delivery);
    const { id, sentMs } = requireFresh(delivery, parts.wallMs());
    if (trigger.isPaused)
      throw new MusterError('failed_precondition', `trigger ${trigger.name} is paused; send it again later`);
    const facts = { body: bodyOf(delivery.body), delivery: id, time: new Date(sentMs).toISOString() };
    const requestId = `webhook/${trigger.name}/${trigger.createdAtMs}/${digestOf(id).slice(0, 32)}`;
    const request = { requestId, digest: digestOf(delivery.body) };
    const { record, repeated } = await requests
      .once(request, () => parts.triggers.fireByWebhook(trigger, { cause: `delivery ${id}`, facts, request }))
      .catch((error: unknown) => {
        throw error instanceof MusterError && error.code === 'already_exists' ? idOfAnother(id) : error;
      });
    return {
      trigger: trigger.name,
      run: record.arrayId ?? runStartedFor(parts.state.pipelines, requestId),
      repeated,
    };
  };
}

/** The request id that the delivery was stored with means nothing to its sender. */
function idOfAnother(id: string): MusterError {
  return new MusterError(
    'already_exists',
    `webhook-id: a delivery with the id ${id.slice(0, 80)} and another body was carried out before; ` +
      'give each delivery an id of its own; one that is repeated keeps its body',
  );
}

/** Of a request that had to wait: the run that it has started since. null: none yet, or it is no longer kept. */
export function runStartedFor(
  { runs }: Pick<ClusterState['pipelines'], 'runs'>,
  requestId: string,
): string | null {
  for (const run of runs.values()) if (run.requestId === requestId) return run.id;
  return null;
}

/** One answer for every reason: whoever does not have the secret learns not even whether there is such a trigger. */
async function signedFor(
  { state, vault, gate }: WebhookParts,
  { trigger: name, id, timestamp, signature, body, peer }: WebhookDelivery,
): Promise<StoredTrigger> {
  const trigger = state.pipelines.triggers.get(name);
  if (trigger?.source.kind === 'webhook' && id !== null && timestamp !== null && signature !== null) {
    const [secret] = await vault.read(trigger.project, [webhookSecretName(name)]).catch(() => []);
    const text = secret === undefined ? null : Buffer.from(secret.value).toString();
    if (text !== null && isSignedBy(text, { id, timestamp, body }, signature)) return trigger;
  }
  const mayFail = gate.refusals.mayFail(peer);
  const kind = mayFail ? 'unauthenticated' : 'too_many_failures';
  gate.refusals.note({ kind, method: `webhook of ${name.slice(0, 60)}`, peer, by: null });
  if (!mayFail)
    throw new MusterError('resource_exhausted', 'too many deliveries without a valid signature; wait');
  throw new MusterError(
    'unauthenticated',
    'no valid signature: send webhook-id, webhook-timestamp and webhook-signature, made with the secret of this trigger',
  );
}

/** @throws {MusterError} `unauthenticated` */
function requireFresh(
  { id, timestamp }: WebhookDelivery,
  nowMs: number,
): { readonly id: string; readonly sentMs: number } {
  const sentMs = /^\d{1,12}$/.test(timestamp ?? '') ? Number(timestamp) * 1_000 : Number.NaN;
  if (!(Math.abs(nowMs - sentMs) <= windowMs))
    throw new MusterError(
      'unauthenticated',
      `webhook-timestamp: ${timestamp?.slice(0, 40)}; expected seconds within 5 minutes of ${Math.floor(nowMs / 1_000)}`,
    );
  if (id === null || !/^[\x21-\x7e]{1,256}$/.test(id))
    throw new MusterError('invalid', 'webhook-id: expected 1 to 256 printable characters without spaces');
  return { id, sentMs };
}

/** @throws {MusterError} `invalid` */
function bodyOf(body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new MusterError('invalid', 'the body is not JSON', { cause: error });
  }
}

function digestOf(value: string | Uint8Array): string {
  return createHash('sha256').update(value).digest('hex');
}
