import { causeOf } from '@muster/common/cause';
import type { ResumeChoice } from '@muster/common/checkpoints';
import { InvariantViolation } from '@muster/common/errors';
import { defaultRetryCauses } from '@muster/common/spec/causes';
import { isTerminal, type JobStateKind, jobStates } from '@muster/common/states';
import type { LedgerKind } from '@muster/common/views';
import { describe, expect, it } from 'vitest';
import { currentAttempt, isReleased, type Job, type Task } from '../model.ts';
import {
  aCheckpoint,
  aFailure,
  aJob,
  allocation,
  anEndpoint,
  anExit,
  aSpec,
  nodeNameOf,
  placementsFor,
  seededRandom,
  someMs,
} from '../modelFixture.ts';
import { resumeCandidates } from './resume.ts';
import { type JobEvent, type Transition, transition } from './transition.ts';
import { aVerdict, brokenByPhases, likelyEvents, somePhases } from './walkFixture.ts';

const startError = causeOf('image_pull', 'there is no such image');

describe('any sequence of events', () => {
  it('keeps the rules, and comes to an end when the nodes follow their orders', () => {
    const random = seededRandom(20_240_229);
    const visited = new Set<JobStateKind>();
    for (let life = 0; life < 3_000; life += 1) {
      const walk = new Walk(random, visited);
      for (let step = 0; step < 60; step += 1) walk.step();
      walk.finish();
    }
    expect([...visited].sort()).toEqual([...jobStates].sort());
  });
});

/** Throws arbitrary events at a job and checks the rules on top of transition.ts after each. */
class Walk {
  private job: Job;
  private readonly pick: <T>(...choices: readonly T[]) => T;
  private readonly visited: Set<JobStateKind>;
  private readonly history: JobEvent[] = [];
  private nowMs = someMs;
  /** GPU-milliseconds, counted from outside. */
  private heldMs = 0;
  private waitedMs = 0;
  private isStopped = false;

  constructor(random: () => number, visited: Set<JobStateKind>) {
    this.visited = visited;
    this.pick = (...choices) => choices[Math.floor(random() * choices.length)] as (typeof choices)[number];
    const max = this.pick(1, 2, 3);
    const range = { min: 1, max };
    const floor = { min_bandwidth_mbps: 100 };
    const nodes = this.pick<number | typeof range>(max, range);
    const max_attempts = this.pick(1, 2, 4);
    const on = this.pick(
      ['exit_code' as const, ...defaultRetryCauses],
      ['node_lost' as const, 'image_pull' as const],
    );
    this.job = aJob(1, {
      spec: aSpec({
        resources: { nodes, gpus: 1 },
        retry: { max_attempts, on, breaker: { failures: this.pick(1, 3), pause: '10m' } },
        on_divergence: this.pick('warn', 'stop'),
        on_hang: { action: this.pick('warn', 'restart') },
        max_runtime: '1h',
        launcher: this.pick('torchrun', 'mpi-hostfile'),
        preflight: this.pick<boolean | typeof floor>(false, floor),
        ...this.pick({}, { phases: somePhases }),
      }),
    });
  }

  step(): void {
    this.play(this.anyEvent());
  }

  /** From wherever it is, a job whose nodes do as they are told comes to an end: it is never stuck. */
  finish(): void {
    for (let turn = 0; !isTerminal(this.job.state.kind); turn += 1) {
      this.check(turn < 20, 'a job is never stuck');
      const awaiting = this.job.phase?.awaiting ?? null;
      if (awaiting !== null) this.play(aVerdict(awaiting.attempt, this.pick('met', 'unmet')));
      if (this.job.state.kind === 'queued') this.play(this.allocation(this.job.spec.resources.nodes));
      const attempt = this.job.lastAttempt;
      for (const { nodeRank } of this.tasks()) this.play(this.prepared(attempt, nodeRank));
      for (const { nodeRank } of this.tasks()) this.play(this.checked(attempt, nodeRank, null));
      for (const { nodeRank } of this.tasks()) {
        this.play({ kind: 'taskEnded', attempt, nodeRank, exit: anExit(), failedAtMs: null });
      }
    }
  }

  private tasks(): readonly Task[] {
    return currentAttempt(this.job)?.tasks ?? [];
  }

  private allocation(count: number): Extract<JobEvent, { kind: 'allocate' }> {
    const tasks = placementsFor(this.job, count);
    const nodes = tasks.map(({ node }): string => node);
    const best = resumeCandidates(this.job).find(({ shared, node }) => shared || nodes.includes(node));
    return allocation(tasks, { resume: best === undefined ? null : { name: best.name, step: best.step } });
  }

  private prepared(attempt: number, nodeRank: number, port = 1): Extract<JobEvent, { kind: 'prepared' }> {
    const address = `10.0.0.${nodeRank + 1}`;
    const endpoints = [
      anEndpoint({ address }),
      anEndpoint({ address: `fd00::${nodeRank}`, network: 'fd00::/64' }),
    ];
    const master = nodeRank === 0 ? { addr: address, port } : null;
    return { kind: 'prepared', attempt, nodeRank, master, endpoints, testPort: port };
  }

  private checked(
    attempt: number,
    nodeRank: number,
    error: string | null,
    bytesPerS = 1e9,
  ): Extract<JobEvent, { kind: 'checked' }> {
    const ranks = [0, 1, 2].filter((rank) => rank !== nodeRank);
    const findings = {
      round: currentAttempt(this.job)?.network?.round ?? 1,
      paths: ranks.map((rank) => ({ nodeRank: rank, error, roundTripUs: 1 })),
      preflight: {
        error: null,
        backend: 'tcp',
        pairs: ranks.map((rank) => ({ nodeRank: rank, bytesPerS })),
        allReduceBytesPerS: null,
      },
    } as const;
    return { kind: 'checked', attempt, nodeRank, findings };
  }

  private anyEvent(): JobEvent {
    const { lastAttempt } = this.job;
    // Mostly of the current attempt, or nothing would ever get far.
    const attempt = this.pick(
      lastAttempt,
      lastAttempt,
      lastAttempt,
      lastAttempt,
      lastAttempt - 1,
      lastAttempt + 1,
    );
    const nodeRank = this.pick(0, 0, 1, 2, 7);
    const kind = this.pick(null, 'cuda_oom', 'corrupt_checkpoint', 'nan_loss', 'nccl_timeout', 'gpu_hw_ecc');
    const crash = anExit({ exitCode: 1, failure: aFailure({ kind, rank: this.pick(null, 0, 1, 9) }) });
    const neverStarted = anExit({ exitCode: null, startError });
    const terminated = anExit({ exitCode: null, signal: 'SIGTERM' });
    const lostStatus = anExit({ exitCode: null, statusLost: true });
    const events: { readonly [K in JobEvent['kind']]: Extract<JobEvent, { kind: K }> } = {
      allocate: this.allocation(this.pick(1, 2, 3)),
      prepared: this.prepared(attempt, nodeRank, this.pick(1, 1, 1, 2)),
      checked: this.checked(
        attempt,
        nodeRank,
        this.pick(null, null, null, 'refused'),
        this.pick(1e9, 1e9, 1),
      ),
      taskRunning: { kind: 'taskRunning', attempt, nodeRank },
      taskEnded: {
        kind: 'taskEnded',
        attempt,
        nodeRank,
        exit: this.pick(anExit(), anExit(), crash, terminated, neverStarted, lostStatus),
        failedAtMs: this.pick(null, someMs, someMs + 1),
      },
      taskLost: { kind: 'taskLost', attempt, nodeRank, message: 'rebooted' },
      startFailed: { kind: 'startFailed', attempt, cause: startError, excludeNodes: [nodeNameOf('node-1')] },
      prepareTimeout: { kind: 'prepareTimeout', attempt, doing: [] },
      rendezvousTimeout: { kind: 'rendezvousTimeout', attempt },
      stop: { kind: 'stop', reason: '' },
      requeue: {
        kind: 'requeue',
        from: this.pick<ResumeChoice>({ kind: 'newest' }, { kind: 'start' }, { kind: 'step', step: 3 }),
      },
      preempt: { kind: 'preempt', attempt, message: 'is preempted', by: null },
      checkpoint: {
        kind: 'checkpoint',
        attempt,
        nodeRank,
        checkpoint: aCheckpoint(this.pick(1, 2, 3, 4, 5, null), {
          version: this.pick('v1', 'v1', 'v2'),
          verdict: this.pick('verified', 'verified', 'unverified', 'corrupt'),
          savedAtMs: this.nowMs - this.pick(0, 500, -1e6, 1e6),
        }),
        shared: this.pick(true, false),
        afterStop: this.pick(true, false),
      },
      trainingComplete: { kind: 'trainingComplete', attempt, nodeRank },
      firstStep: { kind: 'firstStep', attempt, nodeRank, step: 1, atMs: this.nowMs - this.pick(-1e6, 1e6) },
      trainingSign: {
        kind: 'trainingSign',
        attempt,
        nodeRank,
        sign: {
          kind: this.pick('nan_loss', 'loss_spike'),
          step: this.pick(3, 4, null),
          lastGoodStep: this.pick(2, null),
          rank: null,
          line: 1,
          text: 'loss nan',
        },
      },
      hung: {
        kind: 'hung',
        attempt,
        nodeRank,
        sign: { quietForMs: 1_000, usualMs: 1, gpus: 'idle', rank: this.pick(0, 9, null) },
      },
      extend: { kind: 'extend', byMs: 1_000 },
      timeLimit: { kind: 'timeLimit', attempt },
      phaseJudged: aVerdict(attempt, this.pick('met', 'met', 'unmet', 'unknown')),
    };
    return events[this.pick(...likelyEvents)];
  }

  private play(event: JobEvent): void {
    const before = this.job;
    this.history.push(event);
    this.nowMs += this.pick(1, 700, 5_000);
    let next: Transition;
    try {
      next = transition(before, event, this.nowMs);
    } catch (error) {
      if (!(error instanceof InvariantViolation)) throw error;
      const { nodes, minNodes } = before.spec.resources;
      const isOfAnotherSize =
        event.kind === 'allocate' && (event.tasks.length < minNodes || event.tasks.length > nodes);
      this.check(
        event.kind === 'allocate' &&
          (before.state.kind !== 'queued' || isOfAnotherSize || before.phase?.awaiting != null),
        'only a second attempt, one of another size, or one before the verdict is refused',
      );
      return;
    }
    this.job = next.job;
    this.visited.add(next.job.state.kind);
    this.checkStep(before, event, next);
    this.checkState(next.job);
    this.checkCheckpoints(before, next.job);
    this.checkLedger(before, next);
    for (const rule of brokenByPhases(before, event, next.job)) this.check(false, rule);
    this.isStopped ||= event.kind === 'stop';
    this.check(!this.isStopped || next.job.state.kind !== 'queued', 'a stopped job is never queued again');
  }

  private checkStep(before: Job, event: JobEvent, { job, ended, events }: Transition): void {
    const [was, is] = [currentAttempt(before), currentAttempt(job)];
    this.check(event.kind === 'allocate' ? was === null : true, 'no attempt is allocated beside another');
    this.check(
      job.lastAttempt === before.lastAttempt + (event.kind === 'allocate' ? 1 : 0),
      'numbers grow by one',
    );
    if (isTerminal(before.state.kind)) this.check(job === before, 'a job that has ended never changes');
    if (event.kind !== 'phaseJudged' && 'attempt' in event && event.attempt !== was?.number) {
      const isLate = event.kind === 'checkpoint' && was === null && event.attempt === before.lastAttempt;
      const keysOf = ({ checkpoints }: Job) =>
        checkpoints.map(({ name, version }) => name + version).join(' ');
      if (isLate) {
        this.check(job.state === before.state && ended === null, 'a late word moves nothing');
        this.check(keysOf(job) === keysOf(before), 'and brings no new checkpoint');
      } else {
        this.check(job === before && events.length === 0 && ended === null, 'a stale report changes nothing');
      }
    }
    this.check(
      job === before || job.state.kind === before.state.kind || events.length > 0,
      'every new state is told',
    );
    this.check(job !== before || events.length === 0, 'no event without a change');

    const over = was !== null && is === null;
    this.check((ended !== null) === over, 'an attempt that is over is handed out for the record');
    const after = is ?? ended;
    if (ended !== null) {
      this.check(
        ended.number === was?.number && ended.state === 'ended',
        'the record is of the attempt before',
      );
      this.check(
        ended.endedAtMs !== null && ended.tasks.every((task) => task.state === 'ended'),
        'and is complete',
      );
      // The end of a phase that was not the last, too.
      const isGood = ended.cause === null;
      this.check(
        job.phase === null
          ? isGood === (job.state.kind === 'succeeded')
          : isGood || job.state.kind !== 'succeeded',
        'only success has no cause',
      );
    }
    for (const task of was?.tasks ?? []) {
      const now = after?.tasks[task.nodeRank];
      if (task.state === 'ended') this.check(now === task, 'a task that has ended never changes');
      if (task.state === 'ended' || now?.state !== 'ended' || was === null || !isReleased(was)) continue;
      const reported = event.kind === 'taskEnded' || event.kind === 'taskLost';
      this.check(
        reported && event.nodeRank === task.nodeRank,
        'after the release only report or proof end a task',
      );
    }
  }

  private checkCheckpoints(before: Job, { checkpoints, state }: Job): void {
    for (const was of before.checkpoints) {
      const now = checkpoints.find(({ name, version }) => name === was.name && version === was.version);
      if (now === undefined) continue;
      if (was.verdict === 'corrupt') this.check(now.verdict === 'corrupt', 'what is corrupt stays so');
      if (was.suspect) this.check(now.suspect, 'what is suspect stays so');
    }
    if (before.state.kind !== 'queued' || state.kind !== 'starting') return;
    const { resume } = state.attempt;
    const chosen = before.checkpoints.find(({ name }) => name === resume?.name);
    const isGood = chosen?.verdict === 'verified' && !chosen.suspect;
    this.check(resume === null || isGood, 'an attempt begins from what is verified and not suspected');
  }

  private checkLedger(before: Job, { job, ended }: Transition): void {
    if (before.state.kind === 'queued' && job.state.kind !== 'queued')
      this.waitedMs += before.spec.resources.nodes * (this.nowMs - before.state.sinceMs);
    if (ended !== null) this.heldMs += ended.tasks.length * (this.nowMs - ended.allocatedAtMs);
    const booked = (isMeant: (kind: LedgerKind) => boolean) =>
      job.ledger.reduce((sum, { kind, gpuSeconds }) => sum + (isMeant(kind) ? gpuSeconds : 0), 0) * 1_000;
    const isEqual = (a: number, b: number) => Math.abs(a - b) < 1e-3;
    this.check(
      isEqual(
        booked((kind) => kind === 'queued'),
        this.waitedMs,
      ),
      'all waiting is booked',
    );
    this.check(
      isEqual(
        booked((kind) => kind !== 'queued'),
        this.heldMs,
      ),
      'all that was held is booked, once',
    );
    this.check(
      job.ledger.every(({ gpuSeconds }) => gpuSeconds > 0),
      'and nothing negative',
    );
  }

  private checkState({ state, spec, failures }: Job): void {
    this.check(failures < spec.retry.maxAttempts, 'the budget of failures is kept');
    if (state.kind === 'queued') {
      const { breaker, backoff } = spec.retry;
      const longestMs = Math.max(breaker.pauseMs, backoff.maxMs);
      this.check(state.backoffMs <= longestMs, 'the breaker lets a trial through after its pause');
      this.check(!state.breakerOpen || state.backoffMs >= breaker.pauseMs, 'and pauses as long as it says');
    }
    if (state.kind !== 'starting' && state.kind !== 'running' && state.kind !== 'stopping') return;
    const { attempt } = state;
    const tasks = attempt.tasks.map((task) => task.state);
    this.check(
      attempt.state !== 'ended' && tasks.some((task) => task !== 'ended'),
      'an attempt of an active job lives',
    );
    this.check(
      attempt.tasks.every((task) => (task.exit !== null) === (task.state === 'ended')),
      'an exit belongs to an end',
    );
    const isBeforeRelease = (task: string) => task === 'assigned' || task === 'prepared';
    this.check(tasks.some(isBeforeRelease) === !isReleased(attempt), 'released is when every task is ready');
    if (!isReleased(attempt)) {
      this.check(
        state.kind === 'starting' && !tasks.includes('running'),
        'nothing runs or stops before the release',
      );
      this.check(!tasks.includes('ended'), 'no rank is missing before the release');
    }
    if (state.kind === 'running') {
      this.check(!tasks.includes('checked'), 'a job runs when every task has been seen running');
    }
    if (state.kind !== 'stopping') {
      this.check(
        attempt.tasks.every((task) => task.exit === null || task.exit.exitCode === 0),
        'one bad end stops all',
      );
    }
  }

  private check(holds: boolean, rule: string): void {
    if (!holds) throw new Error(`${rule}: broken by ${JSON.stringify(this.history)}`);
  }
}
