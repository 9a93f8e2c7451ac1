/**
 * Runs the fencing command for silent nodes with running tasks, and retries it while it fails. Its success proves that the
 * node is dead, so that jobs need not wait for the end of their leases. Jobs that are never fenced move only after such a
 * proof, or after the confirmation of an administrator.
 */

import { MusterError, messageOf } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { backoffMs } from '@muster/common/retry';
import type { AgentRegistry } from '../agents/registry.ts';
import { coordinatorPart } from '../caller.ts';
import { confirmDead } from '../commands/nodes.ts';
import type { RunFenceCommand } from '../leases/fenceCommand.ts';
import type { Loop } from '../loop.ts';
import { isReleased } from '../model.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';

const caller = coordinatorPart('fencing command');

export interface FenceHookParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly agents: AgentRegistry;
  readonly log: Logger;
  readonly monotonicMs: () => number;
  /** Why nothing may be rescheduled; null: it may. Who may be cut off himself cuts nobody's power. */
  readonly paused: () => string | null;
  readonly runCommand: RunFenceCommand;
}

const backoff = { initialMs: 1_000, maxMs: 60_000 } as const;
/**
 * Nodes that a cut takes away together are noticed one after the other, as their heartbeats fall due. Whether it is we who
 * are cut off shows only then, and the first of them must not have lost its power by that time.
 */
const settleHeartbeats = 2;

interface Try {
  /** The silence that it is about. */
  readonly silence: number;
  readonly failures: number;
  readonly notBeforeMs: number;
  readonly isRunning: boolean;
}

export class FenceHook {
  private readonly parts: FenceHookParts;
  private readonly tries = new Map<NodeName, Try>();
  private readonly running = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(parts: FenceHookParts) {
    this.parts = parts;
  }

  /** One pass; idempotent. Waits for no command. */
  run(): void {
    const { agents, state, monotonicMs, paused } = this.parts;
    if (paused() !== null || this.stopping.signal.aborted) return;
    const held = heldTasks(state.jobs.values());
    for (const [node, { isRunning }] of this.tries)
      if (!isRunning && (!agents.isSilent(node) || !state.nodes.has(node))) this.tries.delete(node);
    for (const [node, tasks] of held) {
      const silence = agents.silenceOf(node);
      if (silence === null || !tasks.some(({ attempt }) => isReleased(attempt))) continue;
      if (monotonicMs() - silence.sinceMs < settleHeartbeats * agents.heartbeatIntervalMs) continue;
      const known = this.tries.get(node);
      // One at a time: what began in an earlier silence of it has to end first.
      if (known?.isRunning === true) continue;
      const before = known?.silence === silence.number ? known : null;
      if (monotonicMs() < (before?.notBeforeMs ?? 0)) continue;
      this.start(node, { silence: silence.number, failures: before?.failures ?? 0 });
    }
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.running);
  }

  private start(node: NodeName, attempt: Pick<Try, 'silence' | 'failures'>): void {
    this.tries.set(node, { ...attempt, notBeforeMs: 0, isRunning: true });
    const running = this.fence(node, attempt)
      .catch((error: unknown) => {
        const againInMs = this.retryLater(node, attempt);
        this.parts.log.warn(
          { node, error: messageOf(error), againInMs },
          'the fencing command could not be run: nothing is proven',
        );
      })
      .finally(() => this.running.delete(running));
    this.running.add(running);
  }

  /** @returns milliseconds until the next try */
  private retryLater(node: NodeName, { silence, failures }: Pick<Try, 'silence' | 'failures'>): number {
    const waitMs = backoffMs(backoff, failures + 1);
    const notBeforeMs = this.parts.monotonicMs() + waitMs;
    this.tries.set(node, { silence, failures: failures + 1, notBeforeMs, isRunning: false });
    return waitMs;
  }

  private async fence(node: NodeName, attempt: Pick<Try, 'silence' | 'failures'>): Promise<void> {
    const { state, log, loop, agents, runCommand } = this.parts;
    const { silence } = attempt;
    const addresses = state.nodes.get(node)?.inventory.addresses ?? [];
    log.warn({ node }, 'a node with running tasks is silent: running the fencing command');
    const { exitCode, output } = await runCommand(node, addresses, this.stopping.signal);
    if (this.stopping.signal.aborted) return;
    const againInMs = this.retryLater(node, attempt);
    if (exitCode !== 0) {
      log.warn({ node, exitCode, output, againInMs }, 'the fencing command failed: nothing is proven');
      return;
    }
    try {
      const proof = { kind: 'fence_command', silence } as const;
      await loop.run(caller, (draft, nowMs) => confirmDead(draft, agents, node, proof, nowMs));
      agents.noteDead(node, silence);
      log.warn({ node }, 'the fencing command has ended a silent node');
    } catch (error) {
      const known = error instanceof MusterError ? error.message : messageOf(error);
      log.warn(
        { node, error: known },
        'the fencing command succeeded, but the node responded meanwhile: ignored',
      );
    }
  }
}
