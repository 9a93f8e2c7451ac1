import type { Client } from '@grpc/grpc-js';
import { conditionToWire } from '@muster/common/wire/codec';
import { musterService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SettableMachine } from '../clock/machineFixture.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { provesTerm } from '../leases/testimonyFixture.ts';
import type { StoredEvent } from '../model.ts';
import { aCondition, nodeNameOf } from '../modelFixture.ts';
import { connected } from './agentFixture.ts';
import { startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
let machine: SettableMachine;
beforeEach(async () => {
  machine = new SettableMachine();
  coordinator = await startTestCoordinator({ clock: machine, machineClock: machine.port });
  client = coordinator.client();
});
afterEach(() => coordinator.close());

/** Calls that change nothing of the cluster. */
const reading: ReadonlySet<string> = new Set([
  'BackupStore',
  'GetJob',
  'GetLoginMethod',
  'ResolveJob',
  'ListJobs',
  'ExplainJob',
  'ReadLogs',
  'WatchEvents',
  'ListNodes',
  'GetNode',
  'GetCaller',
  'GetCluster',
  'GetUpkeep',
  'GetClock',
  'QueryMetrics',
  'WatchMetrics',
  'ListTelemetry',
  'SummarizeTraining',
  'GetTrainingStatus',
  'ListCredentials',
  'ListUsers',
  'ListProjects',
  'ListSecrets',
  'ListAlerts',
  'ListSweeps',
  'GetSweep',
  'ListTrials',
  'Advise',
  'ListPipelines',
  'GetPipeline',
  'GetLineage',
  'ListTriggers',
  'GetTrigger',
]);

const ann = { name: 'ann', role: 'user', projects: [] } as const;
const anAlert = { name: 'waits', condition: "workload_state == 'queued'" };
const aSweep = {
  specJson: JSON.stringify({
    name: 'tune',
    trials: 1,
    objective: { metric: 'train_loss' },
    parameters: { lr: [1, 2] },
    job: { command: ['true'] },
  }),
  requestId: 's1',
};
const aPipeline = {
  specJson: JSON.stringify({ name: 'vision', steps: { a: { run: 'true' } } }),
  requestId: 'p1',
};
const aTrigger = { name: 'nightly', specJson: aPipeline.specJson, cron: '0 3 * * *' };
const ofAnn = { user: 'ann', label: 'nightly', projects: [], verbs: [] };

/** The others: one call of each, after what it needs, and an event that it makes. */
const changing: Readonly<Record<string, readonly [kind: string, () => Promise<() => Promise<unknown>>]>> = {
  Submit: ['job.submitted', async () => () => submitJob(coordinator, 'r1')],
  StopJobs: [
    'job.cancelled',
    async () => {
      const id = await submitJob(coordinator, 'r1');
      return () => coordinator.api.stopJobs([id]);
    },
  ],
  RequeueJob: [
    'job.stopping',
    async () => {
      const id = await submitJob(coordinator, 'r1');
      await startJob(coordinator, id);
      return () => coordinator.api.requeueJob(id, 'q1', { kind: 'newest' }, null, true);
    },
  ],
  ExtendJob: [
    'job.extended',
    async () => {
      const spec = { name: 'train', command: ['true'], max_runtime: '1h' };
      const id = await submitJob(coordinator, 'r1', JSON.stringify(spec));
      return () => coordinator.api.extendJob(id, 1_000);
    },
  ],
  CreateJoinToken: ['token.created', async () => () => coordinator.api.createJoinToken('node-1')],
  ClearCondition: [
    'node.clear_asked',
    async () => {
      const condition = conditionToWire(aCondition('xid_48', { clears: 'by_hand' }));
      const { received, send } = await connected(coordinator, client, 'node-1', { conditions: [condition] });
      return async () => {
        const cleared = coordinator.api.clearCondition({ node: 'node-1', kind: 'xid_48', gpuUuid: null });
        await vi.waitFor(() => expect(received.some((each) => each.clearCondition)).toBe(true));
        send({ status: { conditions: [] } });
        await cleared;
      };
    },
  ],
  RejoinNode: [
    'node.rejoin_allowed',
    async () => {
      const { cancel } = await connected(coordinator, client, 'node-1');
      cancel();
      await vi.waitFor(() => expect(coordinator.agents.isOnline(nodeNameOf('node-1'))).toBe(false));
      return () => coordinator.api.rejoinNode('node-1');
    },
  ],
  ConfirmDead: [
    'node.confirmed_dead',
    async () => {
      await connected(coordinator, client, 'node-1');
      for (let second = 0; second < 10; second += 1) {
        coordinator.clock.nowMs += 1_000;
        await Promise.all(coordinator.leases.run());
      }
      return () => coordinator.api.confirmDead('node-1');
    },
  ],
  RemoveLogs: [
    'log.removed',
    async () => {
      const jobId = await submitJob(coordinator, 'r1');
      await startJob(coordinator, jobId);
      await coordinator.logs.append({ jobId, attempt: 1, nodeRank: 0 }, 0, Buffer.from('ready\n'));
      return () => coordinator.api.removeLogs(jobId);
    },
  ],
  RevokeCredential: [
    'token.revoked',
    async () => {
      await coordinator.api.createJoinToken('node-1');
      return () => coordinator.api.revokeCredential('node-1');
    },
  ],
  AddUser: ['user.added', async () => () => coordinator.api.addUser(ann)],
  ChangeUser: [
    'user.changed',
    async () => {
      await coordinator.api.addUser(ann);
      return () => coordinator.api.changeUser('ann', { role: 'viewer' });
    },
  ],
  RemoveUser: [
    'user.removed',
    async () => {
      await coordinator.api.addUser(ann);
      return () => coordinator.api.removeUser('ann');
    },
  ],
  CreateLoginCode: [
    'user.code_created',
    async () => {
      await coordinator.api.addUser(ann);
      return () => coordinator.api.createLoginCode('ann');
    },
  ],
  CreateUserToken: [
    'token.issued',
    async () => {
      await coordinator.api.addUser(ann);
      return () => coordinator.api.createUserToken(ofAnn);
    },
  ],
  RotateUserToken: [
    'token.issued',
    async () => {
      await coordinator.api.addUser(ann);
      const { id } = await coordinator.api.createUserToken(ofAnn);
      return () => coordinator.api.rotateUserToken(id);
    },
  ],
  SetProject: [
    'project.changed',
    async () => () => coordinator.api.setProject({ name: 'vision', isPrivate: true }),
  ],
  RotateAdminToken: ['token.rotated', async () => () => coordinator.api.rotateAdminToken()],
  RemoveNode: [
    'node.removed',
    async () => {
      await connected(coordinator, client, 'node-1');
      return () => coordinator.api.removeNode('node-1');
    },
  ],
  SetSecret: [
    'secret.set',
    async () => () => coordinator.api.setSecret('default', 'wandb', Buffer.from('0123456789')),
  ],
  RemoveSecret: [
    'secret.removed',
    async () => {
      await coordinator.api.setSecret('default', 'wandb', Buffer.from('0123456789'));
      return () => coordinator.api.removeSecret('default', 'wandb');
    },
  ],
  RotateSecretKey: ['secret.key_rotated', async () => () => coordinator.api.rotateSecretKey()],
  CreateAlert: ['alert.created', async () => () => coordinator.api.createAlert(anAlert)],
  DeleteAlert: [
    'alert.deleted',
    async () => {
      await coordinator.api.createAlert(anAlert);
      return () => coordinator.api.deleteAlert(anAlert.name);
    },
  ],
  SilenceAlert: [
    'alert.silenced',
    async () => {
      await coordinator.api.createAlert(anAlert);
      return () => coordinator.api.silenceAlert(anAlert.name, 60_000, '');
    },
  ],
  AcknowledgeAlert: [
    'alert.acknowledged',
    async () => {
      await coordinator.api.createAlert(anAlert);
      await submitJob(coordinator, 'r1');
      await coordinator.alerts.run();
      return () => coordinator.api.acknowledgeAlert(anAlert.name, null);
    },
  ],
  CreateSweep: ['sweep.created', async () => () => coordinator.api.createSweep(aSweep)],
  StopSweep: [
    'sweep.stopped',
    async () => {
      await coordinator.api.createSweep(aSweep);
      return () => coordinator.api.stopSweep('tune', '');
    },
  ],
  ExtendSweep: [
    'sweep.extended',
    async () => {
      await coordinator.api.createSweep(aSweep);
      return () => coordinator.api.extendSweep('tune', 2, 's2');
    },
  ],
  RunPipeline: ['pipeline.created', async () => () => coordinator.api.runPipeline(aPipeline)],
  StopPipeline: [
    'pipeline.stopped',
    async () => {
      await coordinator.api.runPipeline(aPipeline);
      return () => coordinator.api.stopPipeline('vision', '');
    },
  ],
  RerunPipeline: [
    'pipeline.created',
    async () => {
      const { id } = await coordinator.api.runPipeline(aPipeline);
      await coordinator.api.stopPipeline('vision', '');
      await expect.poll(async () => (await coordinator.api.getPipeline(id)).state).toBe('stopped');
      return () => coordinator.api.rerunPipeline({ run: id, requestId: 'p2' });
    },
  ],
  CreateTrigger: ['trigger.created', async () => () => coordinator.api.createTrigger(aTrigger)],
  DeleteTrigger: [
    'trigger.deleted',
    async () => {
      await coordinator.api.createTrigger(aTrigger);
      return () => coordinator.api.deleteTrigger(aTrigger.name);
    },
  ],
  PauseTrigger: [
    'trigger.paused',
    async () => {
      await coordinator.api.createTrigger(aTrigger);
      return () => coordinator.api.pauseTrigger(aTrigger.name);
    },
  ],
  ResumeTrigger: [
    'trigger.resumed',
    async () => {
      await coordinator.api.createTrigger(aTrigger);
      await coordinator.api.pauseTrigger(aTrigger.name);
      return () => coordinator.api.resumeTrigger(aTrigger.name);
    },
  ],
  RunTrigger: [
    'trigger.fired',
    async () => {
      await coordinator.api.createTrigger(aTrigger);
      return () => coordinator.api.runTrigger({ name: aTrigger.name, requestId: 't1' });
    },
  ],
  SetMaintenance: ['cluster.maintenance', async () => () => coordinator.api.setMaintenance(60_000)],
  AcceptClock: [
    'clock.settled',
    async () => {
      machine.wallOffsetMs = 86_400_000;
      await coordinator.trustedClock.run(coordinator.loop);
      return () => coordinator.api.acceptClock();
    },
  ],
  AdvanceStore: [
    'store.advanced',
    async () => {
      provesTerm(coordinator, nodeNameOf('node-1'), 7);
      return () => coordinator.api.advanceStore();
    },
  ],
  DrainNode: [
    'node.drained',
    async () => {
      await connected(coordinator, client, 'node-1');
      return () => coordinator.api.drainNode('node-1', '', null);
    },
  ],
  EndOrphans: [
    'node.orphans_ended',
    async () => {
      const task = { jobId: 'job_zzzzzzzzzzzz', attempt: 1, nodeRank: 0 };
      await connected(coordinator, client, 'node-1', { observed: [{ task, state: 'TASK_STATE_RUNNING' }] });
      return () => coordinator.api.endOrphans('node-1');
    },
  ],
  UndrainNode: [
    'node.undrained',
    async () => {
      await connected(coordinator, client, 'node-1');
      await coordinator.api.drainNode('node-1', '', null);
      return () => coordinator.api.undrainNode('node-1');
    },
  ],
};

function eventsAfter(seq: number): readonly StoredEvent[] {
  return [...coordinator.memory.events.values()].filter((event) => event.seq > seq);
}

test('every call of the API is one that reads or one that is tried here', () => {
  // A user who logs in is no admin: what logging in emits has tests beside the other calls about people.
  expect([...reading, ...Object.keys(changing), 'Login', 'LoginWithIdToken'].toSorted()).toEqual(
    Object.keys(musterService).toSorted(),
  );
});

test.each(Object.entries(changing))(
  'what %s makes happen names who called, and from where',
  async (_, [kind, prepare]) => {
    const call = await prepare();
    const before = coordinator.state.lastEventSeq;
    await call();
    const event = eventsAfter(before).find((each) => each.kind === kind);
    expect(
      event,
      `${kind} among ${eventsAfter(before)
        .map((each) => each.kind)
        .join(', ')}`,
    ).toMatchObject({
      by: 'admin',
      peer: '127.0.0.1',
    });
  },
);

test('what an agent says names its credential, and what the coordinator does by itself the part of it', async () => {
  const { send, received } = await connected(coordinator, client, 'node-1');
  const byAgent = eventsAfter(0).filter(({ subject }) => subject === 'node-1');
  expect(byAgent.map(({ kind }) => kind)).toEqual(['node.joined', 'node.online']);
  for (const event of byAgent) expect(event.by).toMatch(/^agent:node-1/);
  expect(eventsAfter(0).find(({ kind }) => kind === 'token.joined')?.by).toMatch(/^join:/);
  await submitJob(coordinator, 'r1');
  const assigned = await vi.waitFor(
    () => received.find((each) => each.prepare)?.prepare ?? expect.fail('nothing was assigned'),
  );
  expect(eventsAfter(0).find(({ kind }) => kind === 'attempt.allocated')).toMatchObject({
    by: 'coordinator: scheduler',
    peer: '',
  });
  send({
    prepared: { task: assigned.task, master: { addr: '127.0.0.1', port: 1 }, testPort: 0, endpoints: [] },
  });
  await vi.waitFor(() => expect(eventsAfter(0).some(({ kind }) => kind === 'attempt.released')).toBe(true));
  expect(eventsAfter(0).find(({ kind }) => kind === 'attempt.released')?.by).toMatch(/^agent:node-1/);
});
