/**
 * Submits through NATS: a request to `muster.CLUSTER.submit` is the call `POST /api/v1/jobs`. Its payload is the body, its headers
 * `Authorization` and `Idempotency-Key` are those of HTTP, and the reply is the body of the answer. Who calls is established for
 * each request, because a connection to NATS carries the requests of everybody.
 *
 * Whoever may send a request chooses the subject of the reply, which is published with the rights of the coordinator. Therefore it
 * has to be an inbox: with any other subject a request could forge events, or call the API of JetStream.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isLoopbackHost, parseAddress } from '@muster/common/address';
import { unlessAborted, untilAborted, withDeadline } from '@muster/common/async';
import { MusterError, messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { type BackoffPolicy, backoffMs } from '@muster/common/retry';
import { traceparentKey } from '@muster/common/traceContext';
import { jsonOfMessage } from '@muster/common/wire/jsonMessages';
import { serviceMethods } from '@muster/common/wire/messages';
import { musterService } from '@muster/common/wire/service';
import { jetstreamManager } from '@nats-io/jetstream';
import { headers, Match, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { establish } from '../auth/establish.ts';
import type { Gate } from '../auth/gate.ts';
import { answerTimeoutMs, connectNats, type NatsTarget, natsTarget } from '../events/natsConnection.ts';
import { eventSubjects } from '../events/natsStream.ts';
import { asMusterError, type MusterCalls, type UnaryMethod } from '../rpc/calls.ts';
import { bodyBytesMax, bodyTooLarge, textOfBody } from './body.ts';
import { placesOf, requestOf } from './parameters.ts';
import { type ProblemDetails, problemOf, problemType } from './problems.ts';
import { routesOfCalls } from './routes.ts';

export interface NatsSubmitParts {
  readonly clusterId: string;
  readonly gate: Gate;
  readonly calls: Pick<MusterCalls, 'Submit'>;
  /** Text of a file, see `natsTarget`; null: those of the address, or none. */
  readonly credentials: string | null;
  /** PEM of the authority of NATS; null: those that the system trusts. */
  readonly ca: string | null;
  /** What a request is known by whose client has not said. */
  readonly newRequestId: () => string;
  readonly log: Logger;
}

export interface RunningNatsSubmit {
  /** Resolves once the requests under way are answered, or after half a second. */
  close(): Promise<void>;
}

/** With bodies of the largest size they take 20 MiB. */
export const requestsMax = 64;
/** For requests under way to finish at shutdown, as for gRPC. */
const drainMs = 500;
const retryBackoff: BackoffPolicy = { initialMs: 100, maxMs: 5_000 };
/** What the headers of a reply take of the server's payload limit, at most. */
const headerBytesMax = 1_024;
/** Where events name the address of a caller. NATS does not tell it. */
const peer = 'nats';

/**
 * Inboxes as clients make them, with a prefix per user where permissions ask for it; those of another account (`_R_`); and those of
 * another cluster of NATS (`_GR_`).
 */
const inbox = /^(?:_GR_\.[^.]+\.[^.]+\.)?(?:_INBOX[^.]*|_R_)\./;

/**
 * @param url of NATS, see `natsTarget`
 * @throws {MusterError} `invalid` for a malformed address, and for one on a network without TLS; a NATS that is away is waited for
 */
export function startNatsSubmit(url: string, parts: NatsSubmitParts): RunningNatsSubmit {
  const target = natsTarget(url, parts.credentials);
  if (!target.servers.every(isOnLoopback) && !target.tls && parts.ca === null) {
    const message =
      'refusing to take submits through NATS without TLS beyond loopback, because requests carry tokens: ' +
      'use an address with tls://, or switch off --nats-submit';
    throw new MusterError('invalid', message);
  }
  const stop = new AbortController();
  const running = new NatsSubmit(target, parts, stop.signal).run();
  return {
    close: () => {
      stop.abort();
      return running;
    },
  };
}

const { requestType, responseType } = serviceMethods('Muster').find(({ name }) => name === 'Submit') ?? {
  requestType: '',
  responseType: '',
};
const places = placesOf(routesOfCalls.Submit[0], requestType);

class NatsSubmit {
  private readonly target: NatsTarget;
  private readonly parts: NatsSubmitParts;
  private readonly stop: AbortSignal;
  private readonly subject: string;
  /** Requests that are not answered yet. */
  private readonly open = new Set<Promise<void>>();
  /** Whether requests are taken. null: not known yet. */
  private isServing: boolean | null = null;
  /** In a row. */
  private failures = 0;

  constructor(target: NatsTarget, parts: NatsSubmitParts, stop: AbortSignal) {
    this.target = target;
    this.parts = parts;
    this.stop = stop;
    this.subject = `muster.${parts.clusterId}.submit`;
  }

  async run(): Promise<void> {
    while (!this.stop.aborted) {
      try {
        await this.connectAndServe();
      } catch (error) {
        if (this.stop.aborted) return;
        this.failed(error);
        await delay(backoffMs(retryBackoff, this.failures), undefined, { signal: this.stop }).catch(() => {});
      }
    }
  }

  /** Returns when asked to stop; every other way out throws. */
  private async connectAndServe(): Promise<void> {
    const { clusterId, ca } = this.parts;
    const opening = connectNats(this.target, `muster ${clusterId} submit`, ca);
    const connection = await unlessAborted(this.stop, () => untilAborted(opening, this.stop));
    if (connection === null) {
      void opening.then((late) => late.close()).catch(() => {});
      return;
    }
    const lost = connection.closed().then(() => Promise.reject(new Error('the connection was lost')));
    lost.catch(() => {});
    try {
      await untilAborted(this.expectNotStored(connection), this.stop);
      const refused = Promise.withResolvers<never>();
      const subscription = connection.subscribe(this.subject, {
        callback: (error, message) => {
          if (error === null) this.take(connection, message);
          else refused.reject(error);
        },
      });
      // Credentials that may not subscribe are told so before the answer to a flush. That answer is neither given nor refused on a
      // connection that is lost meanwhile.
      await untilAborted(Promise.race([connection.flush(), refused.promise, lost]), this.stop);
      this.succeeded();
      await unlessAborted(this.stop, () => untilAborted(Promise.race([lost, refused.promise]), this.stop));
      subscription.unsubscribe();
      await withDeadline(
        Promise.all(this.open).then(() => connection.flush()),
        drainMs,
      );
    } finally {
      await connection.close();
    }
  }

  /**
   * A stream would keep requests with their tokens, and its acknowledgement would be what the client takes for the answer.
   * @throws {Error} when there is one
   */
  private async expectNotStored(connection: NatsConnection): Promise<void> {
    const manager = await jetstreamManager(connection, { timeout: answerTimeoutMs, checkAPI: false });
    const [name] = await manager.streams.names(this.subject).next();
    if (name === undefined) return;
    throw new Error(
      `the stream ${name} stores what is sent to ${this.subject}, tokens included; ` +
        `limit it to the events: nats stream edit ${name} --subjects '${eventSubjects(this.parts.clusterId)}'`,
    );
  }

  private take(connection: NatsConnection, message: Msg): void {
    if (!inbox.test(message.reply ?? '')) {
      const { log } = this.parts;
      log.debug(
        { subject: this.subject },
        'a request through NATS has no inbox for its reply, and is ignored',
      );
      return;
    }
    if (this.open.size >= requestsMax) {
      const text = `${requestsMax} requests through NATS are under way, and no more are taken; repeat it later, with the same Idempotency-Key`;
      this.reply(connection, message, problemOf(new MusterError('resource_exhausted', text)));
      return;
    }
    const answering = this.answer(message)
      .then((answer) => this.reply(connection, message, answer))
      .finally(() => this.open.delete(answering));
    this.open.add(answering);
  }

  private async answer(message: Msg): Promise<ProblemDetails | string> {
    const { gate, calls, newRequestId, log } = this.parts;
    const { path } = musterService.Submit;
    try {
      const shown = {
        path,
        peer,
        isStream: false,
        authorization: headerOf(message, 'Authorization'),
        certificate: () => null,
        version: null,
        traceparent: headerOf(message, traceparentKey),
      };
      // Agents have nothing to submit, so nobody here can show a certificate instead of a token.
      const { caller, refusal } = establish({ gate, encrypted: false }, shown);
      if (caller === null) throw refusal;
      if (message.data.length > bodyBytesMax) return problemOf(new MusterError('invalid', bodyTooLarge), 413);
      const sent = {
        path: {},
        query: new URLSearchParams(),
        body: textOfBody(message.data),
        idempotencyKey: headerOf(message, 'Idempotency-Key'),
      };
      const request = requestOf(places, requestType, sent, newRequestId);
      const { handle } = calls.Submit as UnaryMethod<object, object>;
      return JSON.stringify(jsonOfMessage(responseType, await handle(request, caller)));
    } catch (error) {
      const problem = problemOf(asMusterError(error));
      if (problem.status === 500) log.error({ path, error: messageOf(error) }, 'a call through NATS failed');
      return problem;
    }
  }

  private reply(connection: NatsConnection, message: Msg, answer: ProblemDetails | string): void {
    const fields = headers();
    const isProblem = typeof answer !== 'string';
    fields.set('Content-Type', isProblem ? problemType : 'application/json; charset=utf-8');
    if (isProblem) {
      // Where clients for services of NATS look for an error.
      fields.set('Nats-Service-Error', answer.title);
      fields.set('Nats-Service-Error-Code', String(answer.status));
    }
    const bytesMax = (connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerBytesMax;
    try {
      message.respond(isProblem ? problemText(answer, bytesMax) : answer, { headers: fields });
    } catch (error) {
      this.parts.log.warn({ error: messageOf(error) }, 'a request through NATS could not be answered');
    }
  }

  private succeeded(): void {
    this.failures = 0;
    this.isServing = true;
    const { log } = this.parts;
    log.info({ nats: this.target.shown, subject: this.subject }, 'submits are taken through NATS');
  }

  private failed(error: unknown): void {
    this.failures += 1;
    if (this.isServing === false) return;
    this.isServing = false;
    const { log } = this.parts;
    log.warn(
      { nats: this.target.shown, error: messageOf(error) },
      'submits are not taken through NATS until it can be reached',
    );
  }
}

/** @param server `host` or `host:port` */
function isOnLoopback(server: string): boolean {
  const host = parseAddress(server)?.host ?? server;
  return isLoopbackHost(host.replace(/^\[(.*)\]$/, '$1'));
}

/** @returns null where it is absent. Of several, the first. */
function headerOf({ headers: sent }: Msg, name: string): string | null {
  return sent?.values(name, Match.IgnoreCase)[0] ?? null;
}

/** Without its parts of any length where the server would not take them. */
function problemText(problem: ProblemDetails, bytesMax: number): string {
  const text = JSON.stringify(problem);
  if (Buffer.byteLength(text) <= bytesMax) return text;
  return JSON.stringify({ ...problem, detail: problem.detail.slice(0, 255), problems: [] });
}
