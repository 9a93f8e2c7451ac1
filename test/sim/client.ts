/** A user of the API, outside of everything that is tested: calls that get lost, and a watch that continues after a break. */

import type { ResumeChoice } from '@muster/common/checkpoints';
import type { Condition } from '@muster/common/conditions';
import type { Job__Output } from '@muster/common/gen/muster/v1/Job';
import type { Node__Output } from '@muster/common/gen/muster/v1/Node';
import type { JobId } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import type { JobView } from '@muster/common/views';
import { jobFromWire, nodeFromWire } from '@muster/common/wire/codec';
import { musterService } from '@muster/common/wire/service';
import type { DeliveryAnswer, WebhookDelivery } from '@muster/coordinator/rpc/webhookDeliveries';
import type { CoordinatorProcess, UnaryName } from './coordinatorProcess.ts';
import type { History } from './history.ts';
import type { Network } from './network.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

const callTimeoutMs = 15_000;

/** No answer, or a refusal. */
export class CallError extends Error {
  /** It is not known whether it had an effect; to be repeated. */
  readonly isUnanswered: boolean;

  constructor(message: string, isUnanswered: boolean) {
    super(message);
    this.isUnanswered = isUnanswered;
  }
}

export interface ClientParts {
  readonly network: Network;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly life: Life;
  readonly history: History;
}

export class Client {
  private readonly parts: ClientParts;

  constructor(parts: ClientParts) {
    this.parts = parts;
  }

  /** @param token of a user. null: the admin's @throws {CallError} */
  call<Response>(name: UnaryName, request: object, token: string | null = null): Promise<Response> {
    const { requestSerialize, requestDeserialize, responseSerialize, responseDeserialize } =
      musterService[name];
    const wire = requestDeserialize(requestSerialize(request));
    return this.exchange(
      (coordinator, answer) => coordinator.unary(name, wire, token, answer),
      (response) => responseDeserialize(responseSerialize(response as never)) as Response,
    );
  }

  /** Sends a delivery to a trigger until there is an answer. @returns null: it was refused */
  deliver(delivery: WebhookDelivery): Promise<DeliveryAnswer | null> {
    return this.untilAnswered(() =>
      this.exchange(
        (coordinator, answer) => coordinator.deliver(delivery, answer),
        (response) => response as DeliveryAnswer,
      ),
    );
  }

  private exchange<Response>(
    send: (coordinator: CoordinatorProcess, answer: (error: unknown, response: unknown) => void) => void,
    read: (response: unknown) => Response,
  ): Promise<Response> {
    const { network, timeline, life } = this.parts;
    return new Promise<Response>((resolve, reject) => {
      let isOver = false;
      const fail = (message: string, delayMs: number) =>
        timeline.at(delayMs, life, () => {
          if (!isOver) reject(new CallError(message, true));
          isOver = true;
        });
      const { coordinator } = network;
      if (coordinator === null) {
        fail('connection refused', network.latencyMs());
        return;
      }
      fail('deadline exceeded', callTimeoutMs);
      coordinator.life.onEnd(() => fail('connection reset', network.latencyMs()));
      timeline.at(network.latencyMs(), coordinator.life, () => {
        send(coordinator, (error, response) => {
          timeline.at(network.latencyMs(), life, () => {
            isOver = true;
            if (error === null) resolve(read(response));
            else reject(refusal(error));
          });
        });
      });
    });
  }

  /** Asks again until there is an answer. @returns null: it was refused, as where somebody else was first */
  callUntilAnswered<Response>(name: UnaryName, request: object): Promise<Response | null> {
    return this.untilAnswered(() => this.call<Response>(name, request));
  }

  private async untilAnswered<Response>(ask: () => Promise<Response>): Promise<Response | null> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        if (!error.isUnanswered) return null;
      }
      await this.pause(300);
    }
  }

  /** Waits, as a person would. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.parts.timeline.at(delayMs, this.parts.life, resolve);
    });
  }

  async submit(
    requestId: string,
    specFile: object,
    arraySize: number,
    token: string | null = null,
  ): Promise<readonly JobId[]> {
    const array = arraySize === 0 ? {} : { arraySize };
    const request = { specJson: JSON.stringify(specFile), requestId, dryRun: false, ...array };
    const { jobIds } = await this.call<{ jobIds: JobId[] }>('Submit', request, token);
    this.parts.history.add({ kind: 'submitAnswered', requestId, jobIds });
    return jobIds;
  }

  /** For a user, who is added. @throws {CallError} */
  async issueToken(user: string, budget: TokenBudget): Promise<string> {
    try {
      await this.call('AddUser', { name: user, role: 'user', projects: [] });
    } catch (error) {
      // Where the answer to an earlier call was lost, the user is there.
      if (!(error instanceof CallError) || error.isUnanswered) throw error;
    }
    const set = Object.fromEntries(Object.entries(budget).filter(([, limit]) => limit !== null));
    const request = { user, label: 'program', projects: [], verbs: [], budget: set };
    const { id, token } = await this.call<{ id: string; token: string }>('CreateUserToken', request);
    this.parts.history.add({ kind: 'tokenIssued', id, budget });
    return token;
  }

  async stop(jobId: JobId): Promise<void> {
    this.parts.history.add({ kind: 'stopSent', jobId });
    await this.call('StopJobs', { ids: [jobId], reason: '' });
    this.parts.history.add({ kind: 'stopAnswered', jobId });
  }

  wantsRequeue(jobId: JobId, from: ResumeChoice): void {
    this.parts.history.add({ kind: 'requeueWanted', jobId, from });
  }

  /** @throws {CallError} */
  async clearCondition(node: string, { kind, gpuUuid }: Pick<Condition, 'kind' | 'gpuUuid'>): Promise<void> {
    const request = gpuUuid === null ? { node, kind } : { node, kind, gpuUuid };
    const { conditions } = nodeFromWire(await this.call<Node__Output>('ClearCondition', request));
    const holds = conditions.some((each) => each.kind === kind && each.gpuUuid === gpuUuid);
    this.parts.history.add({ kind: 'clearAnswered', node, condition: kind, gpuUuid, holds });
  }

  /** @throws {CallError} */
  async listJobs(): Promise<readonly JobView[]> {
    const askedAtMs = this.parts.timeline.nowMs;
    const request = { states: [], limit: 1_000 };
    const answer = await this.call<{ jobs: Job__Output[] }>('ListJobs', request);
    const jobs = answer.jobs.map(jobFromWire);
    const brief = jobs.map(({ id, state, attempts, submitSeq }) => ({
      id,
      state,
      submitSeq,
      attempt: attempts.at(-1)?.number ?? 0,
    }));
    this.parts.history.add({ kind: 'listed', askedAtMs, jobs: brief });
    return jobs;
  }

  /** Looks at all jobs now and then, for good. */
  poll(): void {
    const { timeline, random, life } = this.parts;
    const look = () => {
      this.listJobs().catch(() => {});
      timeline.at(random.waitMs(4_000), life, look);
    };
    timeline.at(random.waitMs(4_000), life, look);
  }

  /** Watches all events for good: after a break it asks for what comes after the last one it saw. */
  watch(): void {
    const { network, timeline, random, life, history } = this.parts;
    let lastSeq = 0;
    const open = () => {
      const { coordinator } = network;
      if (coordinator === null) {
        timeline.at(random.between(100, 1_000), life, open);
        return;
      }
      let isOpen = true;
      const cancelled: (() => void)[] = [];
      const again = () => {
        if (!isOpen) return;
        isOpen = false;
        timeline.at(random.between(10, 1_000), life, open);
      };
      let arrivesMs = 0;
      const call = {
        request: { sinceSeq: lastSeq, follow: true },
        on: (event: string, listener: () => void) => void (event === 'cancelled' && cancelled.push(listener)),
        write: ({ seq, id, cloudEvent }: { seq: number; id: string; cloudEvent: string }) => {
          arrivesMs = Math.max(arrivesMs, timeline.nowMs + network.latencyMs());
          timeline.at(arrivesMs - timeline.nowMs, life, () => {
            if (!isOpen) return;
            lastSeq = seq;
            history.add({ kind: 'watched', event: { seq, id, text: cloudEvent } });
          });
          return true;
        },
        end: again,
        destroy: again,
      };
      coordinator.life.onEnd(() => timeline.at(network.latencyMs(), life, again));
      timeline.at(network.latencyMs(), coordinator.life, () => coordinator.watchEvents(call));
      // The user's own connection breaks now and then, too.
      timeline.at(random.waitMs(30_000), life, () => {
        again();
        timeline.at(0, coordinator.life, () => {
          for (const cancel of cancelled) cancel();
        });
      });
    };
    open();
  }
}

function refusal(error: unknown): CallError {
  const { code, details } = error as { code?: number; details?: string };
  return new CallError(details ?? String(error), code === 14);
}
