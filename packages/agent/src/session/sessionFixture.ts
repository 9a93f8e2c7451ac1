/** An agent as it is wired, above fake drivers, and a coordinator that does what a test wants. */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import type { Condition } from '@muster/common/conditions';
import { type MusterError, messageOf } from '@muster/common/errors';
import { bareGpu, emptyInventory, type NodeInventory } from '@muster/common/hardware';
import { silentLogger } from '@muster/common/log';
import { encodeJobSpec } from '@muster/common/spec/serialize';
import { taskRefToWire } from '@muster/common/wire/codec';
import { expect, onTestFinished } from 'vitest';
import { openAgent } from '../agent.ts';
import { type HubSession, TestHub } from '../hubFixture.ts';
import { openHighestTerm } from '../leases/highestTerm.ts';
import type { Leaving } from '../leaving/leaving.ts';
import { anAssignment, aTask, inWords, TestNode } from '../tasks/managerFixture.ts';
import { openContinuityTokens } from './continuity.ts';
import { credentialFile } from './credential.ts';
import { CredentialRenewal } from './credentialRenewal.ts';
import type { CoordinatorSession, SessionParts } from './session.ts';

export const wireTask = taskRefToWire(aTask);
export const assigned = { task: wireTask, specJson: encodeJobSpec(anAssignment().spec), nodeCount: 1 };
export const start = { task: wireTask, masterAddr: '10.0.0.1', masterPort: 4_000 };

const inventory: NodeInventory = {
  ...emptyInventory,
  gpus: [{ ...bareGpu('GPU-1'), model: 'H100' }],
  cpus: 8,
  memoryMb: 1_024,
  addresses: ['10.0.0.7'],
  labels: { rack: 'r1' },
  drivers: ['process'],
};

const conditions: readonly Condition[] = [
  {
    kind: 'xid_79',
    gpuUuid: 'GPU-1',
    severity: 'critical',
    action: 'drain_gpu',
    clears: 'by_reboot',

    message: 'GPU 0 fell off the bus',
    evidence: 'Xid 79',
    sinceMs: 5,
    lastSeenAtMs: 6,
    count: 1,
    task: null,
  },
];

/** What a test decides of a session. */
interface DialOptions {
  readonly node?: TestNode;
  readonly monotonicMs?: () => number;
  readonly onWelcome?: () => void;
}

interface Dialling {
  readonly node: TestNode;
  readonly agent: { readonly knows: () => readonly string[] };
  readonly leaving: Leaving;
  readonly session: CoordinatorSession;
  readonly renewal: CredentialRenewal;
  readonly refusals: MusterError[];
  /** What it has logged as an error. */
  readonly errors: readonly string[];
  readonly skews: readonly number[];
  readonly cleared: readonly { readonly kind: string; readonly gpuUuid: string | null }[];
}

/** An agent on a fake node, dialling `openStream`. */
export async function dial(
  openStream: SessionParts['openStream'],
  { node = new TestNode(), monotonicMs = () => 0, onWelcome = () => {} }: DialOptions = {},
): Promise<Dialling> {
  const refusals: MusterError[] = [];
  const errors: string[] = [];
  const skews: number[] = [];
  const cleared: { kind: string; gpuUuid: string | null }[] = [];
  const file = credentialFile(node.root);
  const stored = { nodeName: 'node-1', credential: 'muster_agent_first', joined: true, caCertificate: null };
  file.write(stored);
  const renewal = new CredentialRenewal(file, stored, silentLogger);
  const opened = openAgent({
    ...node.agentPorts(),
    openStream,
    whyUnconnected: messageOf,
    instanceId: 'instance-1',
    terms: openHighestTerm(join(node.root, 'term'), silentLogger),
    continuity: openContinuityTokens(join(node.root, 'continuity'), silentLogger),
    machine: { hostName: 'host-1', firmwareUuid: null, cardAddresses: ['02:00:00:00:00:01'] },
    renewal,
    onRefused: (error) => refusals.push(error),
    shutdownGraceMs: 90_000,
    openObservers: () => ({
      ...node.observers(),
      status: async () => ({ inventory, conditions }),
      onClockSkew: (skewMs) => skews.push(skewMs),
      onClearCondition: (kind, gpuUuid) => cleared.push({ kind, gpuUuid }),
      onKeepCheckpoints: () => {},
      onWelcome,
    }),
    monotonicMs,
    chance: () => 0,
    log: { ...silentLogger, error: (_fields, message) => errors.push(message) },
  });
  onTestFinished(() => opened.close());
  await opened.start();
  const { session, manager, leaving } = opened;
  const agent = { knows: () => manager.reports().map(inWords) };
  return { node, agent, leaving, session, renewal, refusals, errors, cleared, skews };
}

export async function connected(
  options: DialOptions = {},
): Promise<Dialling & { readonly hub: TestHub; readonly first: HubSession }> {
  const hub = await TestHub.start();
  const client = hub.client();
  const dialling = await dial(() => client.Session(), options);
  return { ...dialling, hub, first: await hub.session(1) };
}

/** Brings the task to running, through the protocol. */
export async function running({ node, first }: Awaited<ReturnType<typeof connected>>): Promise<void> {
  await first.gets('hello');
  first.welcome({ desired: [assigned] });
  expect(await first.gets('prepared')).toMatchObject({
    task: wireTask,
    master: { addr: '10.0.0.7', port: 4_000 },
    endpoints: [{ address: '10.0.0.7', interface: 'eth0', speedMbps: 10_000, rdma: false }],
    testPort: 4_000,
  });
  expect(node.process.launches).toEqual([]);
  first.send({ start });
  expect(await first.gets('report')).toMatchObject({ task: wireTask, state: 'TASK_STATE_RUNNING' });
}

/** A stream that sends and receives only what a test makes it. */
export class FakeStream extends EventEmitter {
  readonly written: unknown[] = [];
  write(message: unknown): boolean {
    this.written.push(message);
    return true;
  }
  cancel(): void {}
  end(): void {}
}
