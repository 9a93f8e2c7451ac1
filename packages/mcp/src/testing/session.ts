/** The official client, connected in memory to the tools over an API that a test makes up. */
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { emptyInventory } from '@muster/common/hardware';
import type { Verb } from '@muster/common/people';
import type { JobView, NodeView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { onTestFinished } from 'vitest';
import { toolServer } from '../server.ts';

export const someMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** @param answers the methods that the test answers; every other one throws */
export function fakeApi(answers: Partial<MusterApi>): MusterApi {
  return new Proxy(answers as MusterApi, {
    get(target, name) {
      if (name in target) return Reflect.get(target, name);
      return () => {
        throw new Error(`the test gave no answer to ${String(name)}`);
      };
    },
  });
}

export interface ToolSession {
  readonly client: Client;
  /** What the server has reported of its own mistakes. */
  readonly bugs: readonly string[];
  /** Calls a tool. @returns its structured content and its text */
  call(
    name: string,
    given?: Record<string, unknown>,
  ): Promise<{ data: never; text: string; isError: boolean }>;
}

export async function openSession(
  api: MusterApi,
  verbs: readonly Verb[] | null = null,
): Promise<ToolSession> {
  const bugs: string[] = [];
  let requests = 0;
  const server = toolServer({
    api,
    verbs,
    nowMs: () => someMs,
    newRequestId: () => `request-${++requests}`,
    onBug: (tool, message) => void bugs.push(`${tool}: ${message}`),
  });
  const client = new Client({ name: 'test', version: '1' });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  await client.connect(ours);
  onTestFinished(() => client.close());
  return {
    client,
    bugs,
    async call(name, given = {}) {
      const { content, structuredContent, isError } = await client.callTool({ name, arguments: given });
      const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
      return { data: structuredContent as never, text, isError: isError ?? false };
    },
  };
}

export function aJob(number: number, given: Partial<JobView> = {}): JobView {
  return {
    id: `job_${String(number).padStart(12, '0')}`,
    name: `train-${number}`,
    project: 'default',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    state: 'running',
    spec: { command: ['true'], resources: { nodes: 1, gpus: 2 } },
    submittedAtMs: someMs,
    endedAtMs: null,
    pending: null,
    cause: null,
    attempts: [],
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    user: 'admin',
    submitSeq: number,
    excludedNodes: [],
    checkpoints: [],
    training: null,
    ledger: [],
    phases: null,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    failures: 0,
    costUsd: null,
    outputAtMs: null,
    ...given,
  };
}

export function aNode(name: string, given: Partial<NodeView> = {}): NodeView {
  return {
    name,
    state: 'online',
    inventory: { ...emptyInventory, cpus: 8, memoryMb: 16_384 },
    agentVersion: '0.1.0',
    joinedAtMs: someMs,
    silentForMs: 0,
    gpuUses: [],
    cpusUsed: 0,
    memoryUsedMb: 0,
    conditions: [],
    drained: false,
    drainedGpuUuids: [],
    fencedInMs: null,
    bandwidths: [],
    drain: null,
    tasks: [],
    orphans: [],
    ...given,
  };
}
