/** Each built-in alert fires on the state that it is about, after its time and not before, is silent on a healthy one, and has a switch. */
import { type BuiltInAlertName, builtInAlertNames, builtInAlerts } from '@muster/common/builtInAlerts';
import { bareGpu } from '@muster/common/hardware';
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import { TestClock } from '../coordinatorFixture.ts';
import type { Job, Node } from '../model.ts';
import {
  aCondition,
  aJob,
  aNode,
  anAttempt,
  anInventory,
  aSpec,
  aTask,
  queuedState,
  someMs,
} from '../modelFixture.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { AlertWatch } from './alertWatch.ts';

const minuteMs = 60_000;
const gpu = 'GPU-1';

/** What is, with what is healthy where nothing is given. */
interface Scene {
  readonly job?: Partial<Job>;
  /** Of a running attempt of the job. */
  readonly attempt?: Parameters<typeof anAttempt>[1];
  readonly hangs?: boolean;
  readonly utilization?: number;
  readonly node?: Partial<Node>;
  readonly isSilent?: boolean;
  readonly diskFreePercent?: number;
  readonly certificateEndsInMs?: number;
}

const scenes: Readonly<Record<BuiltInAlertName, Scene>> = {
  job_failed: {
    job: {
      state: {
        kind: 'failed',
        endedAtMs: someMs,
        cause: { kind: 'exit_code', message: '', nodeRank: 0, node: null, evidence: null, blame: 'job' },
      },
    },
  },
  gpu_idle: { utilization: 0.4 },
  gpu_low: { utilization: 79 },
  job_hung: { attempt: { hungAtMs: someMs }, hangs: true },
  job_diverged: {
    attempt: {
      signs: [{ kind: 'nan_loss', step: 7, lastGoodStep: 6 }],
    },
  },
  checkpoint_overdue: {
    job: { spec: aSpec({ checkpoint: { dir: '/data/run' }, max_runtime: '50m' }) },
  },
  gpu_unhealthy: { node: { conditions: [aCondition('xid_79', { gpuUuid: gpu, action: 'drain_gpu' })] } },
  node_lost: { isSilent: true },
  node_disk: { node: { conditions: [aCondition('disk_full')] } },
  coordinator_disk: { diskFreePercent: 9.9 },
  queue_stuck: { job: { state: queuedState({ sinceMs: someMs }) } },
  certificate_expiring: { certificateEndsInMs: 47 * 60 * minuteMs },
};

/** A node with a GPU, and a job. @returns moves the clock, and tells what fires then */
async function watchOver(scene: Scene, builtIn: readonly BuiltInAlertName[]) {
  const clock = new TestClock();
  const store = new MemoryStore(new Memory('alerts'));
  const node = aNode('node-1', { inventory: anInventory({ gpus: [bareGpu(gpu)] }), ...scene.node });
  const task = aTask(0, { node: node.name, gpuUuids: [gpu], state: 'running' });
  const runningAtMs = clock.wallMs();
  const attempt = anAttempt(1, { state: 'running', runningAtMs, tasks: [task], ...scene.attempt });
  const job = aJob(1, { state: { kind: 'running', attempt }, lastAttempt: 1, ...scene.job });
  const hasEnded = 'endedAtMs' in job.state;
  const activeJobs = hasEnded ? [] : [job];
  const state = new ClusterState({ ...(await store.load()), activeJobs, nodes: [node] });
  const hang = { quietForMs: 1, usualMs: 1, gpus: 'idle', rank: null } as const;
  const watch: AlertWatch = new AlertWatch({
    state,
    store,
    builtIn,
    log: silentLogger,
    loop: {
      run: async (by, command) => {
        const draft = new Draft(state);
        const answer = draft.attempt(by, () => command(draft, clock.wallMs()));
        watch.committed(draft.apply());
        return answer;
      },
    },
    agents: { isSilent: () => scene.isSilent ?? false, silentForMs: () => minuteMs },
    taskStatus: {
      of: () => ({
        frozen: false,
        doing: null,
        training: null,
        hang: scene.hangs === true ? hang : null,
        signs: [],
      }),
    },
    telemetry: {
      newest: () => ({
        node: node.name,
        host: null,
        gpus: [
          {
            gpuUuid: gpu,
            atMs: clock.wallMs(),
            intervalMs: 10_000,
            task: { jobId: job.id, attempt: 1, nodeRank: 0 },
            utilization: scene.utilization ?? 95,
            memoryUsedMb: null,
            powerWatts: null,
            energyJoules: null,
            smActive: null,
            tensorActive: null,
            dramActive: null,
            temperature: null,
            nvlinkReceiveBytes: null,
            nvlinkTransmitBytes: null,
          },
        ],
      }),
    },
    machine: {
      diskFreePercent: () => scene.diskFreePercent ?? 50,
      certificateExpiresAtMs: () => clock.wallMs() + (scene.certificateEndsInMs ?? 49 * 60 * minuteMs),
    },
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
  });
  if (hasEnded) watch.noteJob(job, 1);
  return async (ms: number) => {
    clock.nowMs += ms;
    await watch.run();
    return [...state.alerts.episodes.values()].map(({ alert, message }) => ({ alert, message }));
  };
}

/** How long the state of a scene lasts before the condition holds. */
const holdsAfterMs: Partial<Record<BuiltInAlertName, number>> = {
  gpu_idle: 10 * minuteMs,
  gpu_low: 10 * minuteMs,
  checkpoint_overdue: 10 * minuteMs,
  queue_stuck: 30 * minuteMs,
};

test.each(builtInAlertNames)('%s fires on what it is about, after its time', async (name) => {
  const after = await watchOver(scenes[name], [name]);
  const holdsMs = holdsAfterMs[name] ?? 0;
  if (holdsMs > 0) expect(await after(holdsMs - minuteMs), 'before its condition holds').toEqual([]);
  const { forMs } = builtInAlerts[name];
  const first = await after(holdsMs > 0 ? minuteMs + 1 : 0);
  if (forMs > 0) {
    expect(first, 'when its condition begins to hold').toEqual([]);
    expect(await after(forMs - 1_000), 'before its time').toEqual([]);
  }
  const [fired, ...others] = await after(20_000);
  expect(fired?.alert).toBe(name);
  expect(fired?.message).not.toMatch(/[{}]/);
  expect(others).toEqual([]);
});

test.each(builtInAlertNames)('%s can be switched off alone', async (name) => {
  const others = builtInAlertNames.filter((each) => each !== name);
  const after = await watchOver(scenes[name], others);
  const fired = [await after(0), await after(90 * minuteMs), await after(90 * minuteMs)].flat();
  expect(fired.map(({ alert }) => alert)).not.toContain(name);
});

test('a healthy cluster has none of them', async () => {
  const after = await watchOver({}, builtInAlertNames);
  for (const ms of [0, 15 * minuteMs, 45 * minuteMs, 24 * 60 * minuteMs]) expect(await after(ms)).toEqual([]);
});
