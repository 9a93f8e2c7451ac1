/**
 * One run from a seed: a cluster, its users and what goes wrong are drawn; a phase with faults, in which only safety is
 * checked, is followed by a quiet one, in which everything has to come to an end.
 */
import type { JobSpecFile } from '@muster/common/spec/types';
import { watchWithAlerts } from './alertUsers.ts';
import { submitWithinBudget } from './budgetedUsers.ts';
import { AlertCheck } from './checks/alerts.ts';
import { ArrayLimitCheck } from './checks/arrayLimits.ts';
import { BudgetCheck } from './checks/budgets.ts';
import { ClientCheck } from './checks/clients.ts';
import { ClockCheck } from './checks/clocks.ts';
import { DependencyCheck } from './checks/dependencies.ts';
import { DrainCheck } from './checks/drains.ts';
import { ExecutionCheck } from './checks/executions.ts';
import { GangCheck } from './checks/gangs.ts';
import { GraceCheck } from './checks/graces.ts';
import { JobStories } from './checks/jobStories.ts';
import { LeaseCheck } from './checks/leases.ts';
import { LeavingCheck } from './checks/leaving.ts';
import { LedgerCheck } from './checks/ledgers.ts';
import { LogCheck } from './checks/log.ts';
import { PathsCheck } from './checks/paths.ts';
import { PhaseCheck } from './checks/phases.ts';
import { PipelineCheck } from './checks/pipelines.ts';
import { PreemptionCheck } from './checks/preemptions.ts';
import { ResumeCheck } from './checks/resumes.ts';
import { RetryCheck } from './checks/retries.ts';
import { checkSettled, type SettledParts } from './checks/settled.ts';
import { SweepStepCheck } from './checks/sweepSteps.ts';
import { TokenBudgetCheck } from './checks/tokenBudgets.ts';
import { TriggerCheck } from './checks/triggers.ts';
import { Verdict, type Violation } from './checks/verdict.ts';
import { Client } from './client.ts';
import { beginFaults, healAll, lose } from './faults.ts';
import { strikeAtPhases } from './gangFaults.ts';
import type { Fact } from './history.ts';
import { operate } from './operator.ts';
import type { PipelineFile, TriggerFile } from './pipelineFiles.ts';
import { bringData, usePipelines } from './pipelineUsers.ts';
import { type Circumstances, type Plan, planOf } from './plan.ts';
import { replaceTimers } from './timeline.ts';
import { Workload } from './workload.ts';
import { World } from './world.ts';

export interface Outcome {
  readonly violations: readonly Violation[];
  /** Equal for equal runs. */
  readonly digest: string;
}

/** More than any run needs; what goes round in circles has to end, too. */
const stepsMax = 400_000;

/**
 * @param print gets every line of the story
 * @param onViolation receives each violation when it is found
 * @param circumstances what is given rather than drawn
 */
export async function simulate(
  seed: number,
  print: ((line: string) => void) | null = null,
  onViolation: (violation: Violation) => void = () => {},
  circumstances: Circumstances = {},
): Promise<Outcome> {
  const plan = planOf(seed, circumstances);
  const verdict: Verdict = new Verdict(() => world.timeline.nowMs, onViolation);
  const world: World = new World({
    seed,
    print,
    gpus: plan.gpus,
    conditions: plan.conditions,
    onAssertion: (what) => verdict.require(false, 'assertion', () => what),
  });
  const { timeline, history, network, life } = world;
  const files = { pipelines: new Map<string, PipelineFile>(), triggers: new Map<string, TriggerFile>() };
  const checks = watchHistory(world, verdict, {
    ...files,
    fileOf: (name) => workload.submissions.get(name)?.file,
    isTimeSteady: () => !plan.faults.some(({ kind }) => kind === 'wallClockJump'),
  });
  const client = new Client({ network, timeline, random: world.random('client'), life, history });
  const workload: Workload = new Workload(client, world.random('workload'), {
    ...plan,
    phaseRandom: world.random('phases'),
  });

  const restoreTimers = replaceTimers(timeline);
  const unhandled = collectUnhandled();
  try {
    world.print(() => JSON.stringify(plan));
    keepLooking(world, Object.values(checks.looking));
    await runFaultPhase(world, plan, client, workload, files);
    await runQuietPhase(plan, { world, client, workload, verdict, ...checks });
  } finally {
    restoreTimers();
    world.close();
    for (const error of await unhandled())
      verdict.require(false, 'crash', () => `unhandled: ${String(error)}`);
  }
  for (const violation of verdict.violations) world.print(() => `VIOLATION ${JSON.stringify(violation)}`);
  return { violations: verdict.violations, digest: history.digest() };
}

interface Written {
  /** By the names of jobs. */
  readonly fileOf: (jobName: string) => JobSpecFile | undefined;
  readonly pipelines: Map<string, PipelineFile>;
  readonly triggers: Map<string, TriggerFile>;
}

function watchHistory(
  world: World,
  verdict: Verdict,
  { fileOf, ...written }: Written & { readonly isTimeSteady: () => boolean },
) {
  const { history, network } = world;
  const executions = new ExecutionCheck(verdict);
  const gangs = new GangCheck(verdict, executions);
  const log = new LogCheck(verdict);
  const clocks = new ClockCheck(verdict);
  const clients = new ClientCheck(verdict, log);
  const drains = new DrainCheck(verdict);
  const paths = new PathsCheck(verdict, fileOf);
  const retries = new RetryCheck(verdict, fileOf);
  const isWell = (name: string) => world.isWell(name);
  const stories = new JobStories(fileOf);
  const resumes = new ResumeCheck(verdict, stories, network.grants, network.conditions.dropChance > 0);
  const preemptions = new PreemptionCheck(verdict, stories);
  const ledgers = new LedgerCheck(verdict);
  const budgets = new BudgetCheck(verdict, stories);
  const shared = { verdict, stories, executions, grants: network.grants, isWell };
  const arrayLimits = new ArrayLimitCheck(verdict, stories);
  const dependencies = new DependencyCheck(verdict, stories);
  const phases = new PhaseCheck(verdict, stories);
  const pipelines = new PipelineCheck(verdict, written.pipelines);
  const sweepSteps = new SweepStepCheck(verdict);
  const triggers = new TriggerCheck(verdict, written.triggers, written.isTimeSteady);
  const alerts = new AlertCheck(verdict);
  const tokenBudgets = new TokenBudgetCheck(verdict, stories);
  const graces = new GraceCheck(shared);
  const leaving = new LeavingCheck({ ...shared, isTimeSteady: () => !world.hasJumped });
  const leases = new LeaseCheck({ verdict, executions, grants: network.grants, fileOf, isWell });
  history.listen((fact, nowMs) => {
    executions.see(fact, nowMs);
    clocks.see(fact, nowMs);
    paths.see(fact);
    leases.see(fact, nowMs);
    retries.see(fact);
    gangs.see(fact, nowMs);
    log.see(fact);
    clients.see(fact, nowMs);
    drains.see(fact, nowMs);
    pipelines.see(fact);
    sweepSteps.see(fact);
    triggers.see(fact, nowMs);
    // One after the other: each event is judged by what was before it and itself.
    for (const each of singly(fact)) {
      if (each.kind === 'committed') for (const event of each.events) stories.follow(event);
      for (const check of [
        resumes,
        preemptions,
        arrayLimits,
        dependencies,
        ledgers,
        budgets,
        tokenBudgets,
        phases,
        alerts,
        graces,
        leaving,
      ])
        check.see(each, nowMs);
    }
  });
  const looking = { leases, graces, leaving, tokenBudgets };
  const settled = { alerts, preemptions, ledgers, executions, pipelines, sweepSteps, triggers };
  return { looking, gangs, leases, log, clients, paths, ...settled };
}

function singly(fact: Fact): readonly Fact[] {
  return fact.kind === 'committed' ? fact.events.map((event) => ({ ...fact, events: [event] })) : [fact];
}

async function runFaultPhase(
  world: World,
  plan: Plan,
  client: Client,
  workload: Workload,
  files: Pick<Written, 'pipelines' | 'triggers'>,
): Promise<void> {
  const { timeline, history, network, life } = world;
  history.add({ kind: 'phase', phase: 'faults' });
  network.lossy = plan.lossy;
  world.startCoordinator();
  for (const site of world.sites) world.boot(site);
  client.watch();
  client.poll();
  void operate(world, client, world.random('operator'), plan);
  workload.begin(timeline, life, plan.meanUserPauseMs, plan.faultPhaseMs);
  if (plan.hasAlerts)
    void watchWithAlerts(client, world.random('users of alerts'), timeline, plan.faultPhaseMs);
  if (plan.hasPipelines) {
    const random = world.random('users of pipelines');
    const { data } = world;
    const parts = { client, random, timeline, workload, history, data, gpus: plan.gpus, ...files };
    void usePipelines(parts, plan.faultPhaseMs);
    void bringData({ ...parts, random: world.random('arrivals') }, plan.faultPhaseMs);
  }
  for (let number = 1; number <= plan.budgets; number += 1) {
    const user = `program-${number}`;
    const parts = { client, timeline, workload, random: world.random(user), gpus: plan.gpus };
    void submitWithinBudget(parts, user, plan.faultPhaseMs);
  }
  beginFaults(world, world.random('faults'), plan.faults, plan.faultPhaseMs);
  strikeAtPhases(world, world.random('strikes'), plan.strikeChance, plan.faultPhaseMs);
  while (timeline.steps < stepsMax && (await timeline.step(plan.faultPhaseMs)));
}

/** Looks every second for what no event would show: that something continues, or does not. */
function keepLooking({ timeline, life }: World, checks: readonly { look(nowMs: number): void }[]): void {
  const look = () => {
    for (const check of checks) check.look(timeline.nowMs);
    timeline.at(1_000, life, look);
  };
  look();
}

async function runQuietPhase(plan: Plan, parts: SettledParts & { readonly gangs: GangCheck }): Promise<void> {
  const { world, verdict, gangs } = parts;
  const { timeline, history, life } = world;
  history.add({ kind: 'phase', phase: 'quiet' });
  const [first] = world.sites;
  if (plan.losesMachine && first !== undefined) lose(world, first);
  healAll(world);
  const quietSinceMs = timeline.nowMs;
  const look = () => {
    gangs.look(timeline.nowMs, (machine) => Math.max(quietSinceMs, world.awakeSinceMs(machine)));
    timeline.at(1_000, life, look);
  };
  look();
  const phase = { isOver: false };
  timeline.at(0, life, () => {
    checkSettled(parts)
      .catch((error: unknown) => verdict.require(false, 'crash', () => String(error)))
      .finally(() => {
        phase.isOver = true;
      });
  });
  while (!phase.isOver && timeline.steps < stepsMax && (await timeline.step(Number.POSITIVE_INFINITY)));
  verdict.require(phase.isOver, 'liveness', () => `no rest after ${timeline.steps} steps`);
  history.add({ kind: 'phase', phase: 'settled' });
}

/** Where a rejection is not handled, Node ends the process: a crash of the agent or coordinator that caused it. */
function collectUnhandled(): () => Promise<readonly unknown[]> {
  const found: unknown[] = [];
  const note = (reason: unknown) => void found.push(reason);
  process.on('unhandledRejection', note);
  return async () => {
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    return found;
  };
}
