/** Rules of leases, fences and gangs, each taken out. */
import type * as fencesModule from '@muster/agent/guard/fences';
import type * as leasedTaskModule from '@muster/agent/leases/leasedTask';
import type * as taskLeasesModule from '@muster/agent/leases/taskLeases';
import type * as ordersModule from '@muster/agent/session/orders';
import type * as stepModule from '@muster/agent/tasks/step';
import type * as verdictsModule from '@muster/coordinator/agents/desired';
import type * as registryModule from '@muster/coordinator/agents/registry';
import type * as leasesModule from '@muster/coordinator/leases/leases';
import type * as partitionModule from '@muster/coordinator/leases/partition';
import type * as excludedNodesModule from '@muster/coordinator/lifecycle/excludedNodes';
import type * as gangModule from '@muster/coordinator/lifecycle/gang';
import type * as pathsModule from '@muster/coordinator/lifecycle/paths';
import type * as transitionModule from '@muster/coordinator/lifecycle/transition';
import type * as guardModule from './guard.ts';
import { type Mutant, replacing } from './mutant.ts';
import { faultsOf } from './plan.ts';

const coordinator = 'packages/coordinator/src';
const gang = replacing<typeof gangModule>(`${coordinator}/lifecycle/gang.ts`);
const paths = replacing<typeof pathsModule>(`${coordinator}/lifecycle/paths.ts`);
const excludedNodes = replacing<typeof excludedNodesModule>(`${coordinator}/lifecycle/excludedNodes.ts`);
const transition = replacing<typeof transitionModule>(`${coordinator}/lifecycle/transition.ts`);
const leases = replacing<typeof leasesModule>(`${coordinator}/leases/leases.ts`);
const partition = replacing<typeof partitionModule>(`${coordinator}/leases/partition.ts`);
const registry = replacing<typeof registryModule>(`${coordinator}/agents/registry.ts`);
const verdicts = replacing<typeof verdictsModule>(`${coordinator}/agents/desired.ts`);
const agent = 'packages/agent/src';
const steps = replacing<typeof stepModule>(`${agent}/tasks/step.ts`);
const orders = replacing<typeof ordersModule>(`${agent}/session/orders.ts`);
const taskLeases = replacing<typeof taskLeasesModule>(`${agent}/leases/taskLeases.ts`);
const leasedTask = replacing<typeof leasedTaskModule>(`${agent}/leases/leasedTask.ts`);
const fences = replacing<typeof fencesModule>(`${agent}/guard/fences.ts`);
const guard = replacing<typeof guardModule>('test/sim/guard.ts');

const hourMs = 3_600_000;

/** The agent sees no lease expire. It looks again after a second, as it does at a task that it has fenced. */
const noAgentFence = leasedTask(
  'LeasedTask.look',
  (look) =>
    function (now) {
      return Math.max(
        look.call(this, () => now() - hourMs),
        now() + 1_000,
      );
    },
);
const noGuardFence = fences('Fences.mayRun', () => () => true);

export const leaseMutants = {
  'two-attempts-are-apart': {
    rule: 'A task is given up only when both fences have held for the margin, by the slowest and the fastest clock.',
    breaks: ['G2'],
    seed: 10,
    circumstances: { faults: faultsOf(5_000, 'partition', 'muteAgent') },
    replacements: [leases('fencedAfterMs', () => (_settings, leaseMs) => leaseMs)],
  },
  // Without the agent's alone no seed shows anything: a guard that is away is back before it matters.
  'two-fences': {
    rule: 'What may run no longer is frozen, by the agent and by the guard.',
    breaks: ['G2'],
    seed: 10,
    replacements: [noAgentFence, noGuardFence],
  },
  'a-fence-in-the-guard': {
    rule: 'The guard holds a fence of its own, for the agent may be stopped, or gone.',
    breaks: ['G2'],
    seed: 17,
    circumstances: { faults: faultsOf(5_000, 'pauseAgent', 'killAgent') },
    replacements: [noGuardFence],
  },
  'a-new-agent-extends-nothing': {
    rule: 'A restarted agent goes on with the deadlines that were.',
    breaks: ['G2'],
    seed: 10,
    replacements: [
      taskLeases(
        'TaskLeases.adopt',
        (adopt) =>
          function (task, ...rest) {
            adopt.call(this, task, ...rest);
            this.grant(task, this['parts'].boottimeMs(), 60_000);
          },
      ),
    ],
  },
  'a-thaw-needs-a-fresh-lease': {
    rule: 'A frozen task runs again only with a lease that has not run out.',
    breaks: ['G2'],
    seed: 1,
    circumstances: { faults: faultsOf(5_000, 'partition', 'deafAgent') },
    replacements: [
      leasedTask(
        'LeasedTask.look',
        (look) =>
          function (now) {
            return this.isFrozen
              ? Math.max(
                  look.call(this, () => now() - hourMs),
                  now() + 1_000,
                )
              : look.call(this, now);
          },
      ),
    ],
  },
  'a-late-release-starts-nothing': {
    rule: 'A task starts only while its lease holds: the agent sees to it, and whatever starts it does.',
    breaks: ['G2'],
    seed: 37,
    replacements: [steps('mayStart', () => () => true), guard('requireLease', () => () => {})],
  },
  'a-lease-counts-from-the-question': {
    rule: 'A lease begins when the question was sent, not when its answer came.',
    breaks: ['G2'],
    seed: 37,
    replacements: [
      taskLeases(
        'TaskLeases.grant',
        (grant) =>
          function (task, _askedMs, leaseMs) {
            grant.call(this, task, this['parts'].boottimeMs(), leaseMs);
          },
      ),
    ],
  },
  'a-new-coordinator-waits': {
    rule: 'After its start a coordinator gives up no node before every lease of an earlier one has ended.',
    breaks: ['G2'],
    seed: 3,
    replacements: [
      registry(
        'AgentRegistry.expect',
        (expect) =>
          function (node) {
            expect.call(this, node);
            const presence = this['nodes'].get(node);
            if (presence !== undefined) presence.lastContactMs -= 60_000;
          },
      ),
    ],
  },
  'suspect-yourself': {
    rule: 'When most nodes fall silent together, none is given up.',
    breaks: ['suspicion'],
    seed: 15,
    circumstances: { faults: faultsOf(5_000, 'isolateCoordinator') },
    replacements: [partition('detectPartition', () => () => null)],
  },
  'a-stop-renews': {
    rule: 'A task that is being stopped keeps its lease: it may need it to save.',
    breaks: ['G4'],
    seed: 1,
    replacements: [
      verdicts('verdictOn', (verdictOn) => (task, ...rest) => {
        const given = verdictOn(task, ...rest);
        return given.verdict === 'VERDICT_STOP' ? { ...given, verdict: 'VERDICT_UNKNOWN' } : given;
      }),
      // The orders of a Welcome bring a lease as well.
      orders(
        'letsRun',
        () =>
          ({ start }) =>
            start !== null,
      ),
    ],
  },
  'held-is-held': {
    rule: 'A job that is to be held is never fenced, and never moved without proof.',
    breaks: ['hold'],
    seed: 103,
    circumstances: { faults: faultsOf(5_000, 'partition', 'muteAgent') },
    replacements: [
      gang(
        'leaseMsOf',
        () =>
          ({ leaseMs }, usualMs) =>
            leaseMs ?? usualMs,
      ),
    ],
  },
  'paths-are-tried': {
    rule: 'A gang is released when its nodes have reached each other.',
    breaks: ['G3'],
    seed: 1,
    replacements: [gang('hasPaths', () => () => false)],
  },
  'paths-are-good': {
    rule: 'A gang whose nodes do not reach each other is not released.',
    breaks: ['G3'],
    seed: 1,
    circumstances: { faults: faultsOf(3_000, 'brokenPath') },
    replacements: [paths('judgePaths', () => () => ({ kind: 'good' }))],
  },
  'nodes-of-failed-starts-are-excluded': {
    rule: 'After a failed start the next attempt excludes that node, where others could take its place.',
    breaks: ['exclusion'],
    seed: 1,
    replacements: [excludedNodes('withExcludedNodes', () => (job) => job)],
  },
  'the-first-failure-is-the-cause': {
    rule: 'Which failure was the first is decided when all are known, not by whose report was received first.',
    breaks: ['G7'],
    seed: 24,
    circumstances: { gpus: [1, 1, 1, 1], meanUserPauseMs: 400 },
    replacements: [transition('outcomeWith', () => (_job, outcome) => outcome)],
  },
} satisfies Record<string, Mutant>;
