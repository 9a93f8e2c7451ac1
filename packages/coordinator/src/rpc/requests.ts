/** Requests that are carried out once, however often they are sent: at once, or again after a restart of the coordinator. */
import { MusterError } from '@muster/common/errors';
import { type SubmitCommand, sameIntent } from '../commands/jobs.ts';
import type { RequestRecord, Store } from '../store/store.ts';

interface Answered {
  readonly record: RequestRecord;
  /** The request had been carried out before, or another call of it was in progress. */
  readonly repeated: boolean;
}

export class Requests {
  private readonly store: Pick<Store, 'readRequest'>;
  private readonly underway = new Map<string, Promise<Answered>>();

  constructor(store: Pick<Store, 'readRequest'>) {
    this.store = store;
  }

  /** @throws {MusterError} `invalid` for an id of another form, `already_exists` for the id of another request, and as `carryOut` */
  async once(
    command: Pick<SubmitCommand, 'digest' | 'requestId'>,
    carryOut: () => Promise<RequestRecord>,
  ): Promise<Answered> {
    const { requestId } = command;
    if (!/^[\x21-\x7e]{1,128}$/.test(requestId)) {
      throw new MusterError('invalid', 'request_id must be 1 to 128 printable characters without spaces');
    }
    const first = this.inProgress(requestId);
    const answering =
      first ?? this.findOrDo(requestId, carryOut).finally(() => this.underway.delete(requestId));
    this.underway.set(requestId, answering);
    const { record, repeated } = await answering;
    return { record: sameIntent(record, command), repeated: repeated || first !== undefined };
  }

  /** The answer to the same request while it is carried out, when the store does not have it yet. */
  inProgress(requestId: string): Promise<Answered> | undefined {
    return this.underway.get(requestId);
  }

  /** @returns null: the request was not carried out, or longer ago than requests are kept */
  earlier(requestId: string): Promise<RequestRecord | null> {
    return this.store.readRequest(requestId);
  }

  /**
   * The result of a request whose answer the client has not received.
   * @throws {MusterError} `not_found`
   */
  async accepted(requestId: string): Promise<RequestRecord> {
    const record = await this.earlier(requestId);
    if (record !== null) return record;
    throw new MusterError(
      'not_found',
      `no request ${requestId} was accepted: nothing was submitted, requeued or extended by it, unless it is older than requests are kept`,
    );
  }

  private async findOrDo(requestId: string, carryOut: () => Promise<RequestRecord>): Promise<Answered> {
    const earlier = await this.earlier(requestId);
    if (earlier !== null) return { record: earlier, repeated: true };
    return { record: await carryOut(), repeated: false };
  }
}
