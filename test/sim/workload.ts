/** What users do: submit single jobs, gangs and arrays, stop some, requeue some, and try again when nothing answers. */
import type { JobId } from '@muster/common/ids';
import type { TokenBudget } from '@muster/common/people';
import { type CauseKind, retryableCauses } from '@muster/common/spec/causes';
import type { JobSpecFile } from '@muster/common/spec/types';
import { CallError, type Client } from './client.ts';
import type { Program } from './machine.ts';
import type { Random } from './random.ts';
import { sharedRoot } from './shelf.ts';
import type { Life, Timeline } from './timeline.ts';

/** One submit, whatever became of it. */
export interface Submission {
  readonly name: string;
  readonly requestId: string;
  readonly file: JobSpecFile;
  readonly program: Program;
  /** As few as will do. */
  readonly nodes: number;
  readonly gpus: number;
  /** Of the token that it was submitted with. Absent: none. */
  readonly budget?: TokenBudget;
}

/** The causes that programs print at their ends. */
const printedCauses: readonly CauseKind[] = [
  ...(['cuda_oom', 'nccl_timeout', 'nccl_error', 'corrupt_checkpoint', 'import_error'] as const),
  ...(['python_exception', 'nan_loss', 'nan_loss', 'gpu_hw_ecc', 'host_oom'] as const),
];

export interface WorkloadPlan {
  /** GPUs of each machine. */
  readonly gpus: readonly number[];
  /** Of a job, that it has phases. */
  readonly phaseChance: number;
  /** What decides that, and about them: a stream of its own. */
  readonly phaseRandom: Random;
}

/** No simulated job has artifacts in a store, so none names a cause of theirs. */
const simulatedCauses = retryableCauses.filter((kind) => !kind.startsWith('artifact_'));

/** How what a job comes after has to end. */
const endings = ['', ':any', ':fail', ''] as const;

export class Workload {
  /** By the name of their jobs. */
  readonly submissions = new Map<string, Submission>();
  /** Answered to a client: these must exist for ever. */
  readonly acknowledged = new Set<JobId>();
  readonly stopSent = new Set<JobId>();
  readonly requeueSent = new Set<JobId>();
  /** Calls that somebody still waits for, or will repeat. */
  callsUnderway = 0;
  private readonly client: Client;
  private readonly random: Random;
  private readonly cluster: WorkloadPlan;
  private requests = 0;

  constructor(client: Client, random: Random, cluster: WorkloadPlan) {
    this.client = client;
    this.random = random;
    this.cluster = cluster;
  }

  /** Users come and go until `untilMs`. */
  begin(timeline: Timeline, life: Life, meanPauseMs: number, untilMs: number): void {
    const act = () => {
      if (timeline.nowMs >= untilMs) return;
      void this.actOnce();
      timeline.at(this.random.waitMs(meanPauseMs), life, act);
    };
    timeline.at(this.random.waitMs(meanPauseMs), life, act);
  }

  private async actOnce(): Promise<void> {
    const { random } = this;
    const known = [...this.acknowledged];
    const what = random.next();
    if (what < 0.7 || known.length === 0) await this.submit();
    else if (what < 0.86) await this.stop(random.pick(known));
    else if (what < 0.88) await this.extend(random.pick(known));
    else await this.requeue(random.pick(known));
  }

  private async submit(): Promise<void> {
    const { random } = this;
    const submission = this.compose();
    const mayBeArray = submission.nodes === 1 && submission.file.checkpoint === undefined;
    const arraySize = mayBeArray && random.chance(0.15) ? random.between(2, 6) : 0;
    const { requestId } = submission;
    // Large ones may not run all at the same time.
    const limit = arraySize > 3 ? { array: `${arraySize}%2` } : {};
    const file = { ...submission.file, ...limit };
    this.submissions.set(submission.name, { ...submission, file });
    const submitOnce = async () => {
      const jobIds = await this.client.submit(requestId, file, arraySize > 3 ? 0 : arraySize);
      for (const id of jobIds) this.acknowledged.add(id);
    };
    // Impatient: the same request twice at once.
    if (random.chance(0.1)) void this.persistently(submitOnce);
    await this.persistently(submitOnce);
  }

  async stop(jobId: JobId): Promise<void> {
    this.stopSent.add(jobId);
    await this.persistently(() => this.client.stop(jobId));
  }

  private async requeue(jobId: JobId): Promise<void> {
    this.requeueSent.add(jobId);
    const requestId = this.nextRequestId();
    const step = this.random.between(1, 600);
    const from = this.random.pick([{ kind: 'newest' }, { kind: 'start' }, { kind: 'step', step }] as const);
    this.client.wantsRequeue(jobId, from);
    await this.persistently(async () => {
      const where = from.kind === 'step' ? { fromStep: step } : { fromStart: from.kind === 'start' };
      const request = { jobId, requestId, force: true, ...where };
      const answer = await this.client.call<{ jobId: JobId }>('RequeueJob', request);
      this.acknowledged.add(answer.jobId);
    });
  }

  private async extend(jobId: JobId): Promise<void> {
    const byMs = this.random.between(500, 5_000);
    await this.persistently(() => this.client.call('ExtendJob', { jobId, byMs }));
  }

  /** Repeats what was not answered; some users give up. */
  private async persistently(attempt: () => Promise<void>): Promise<void> {
    this.callsUnderway += 1;
    while (await this.mustRepeat(attempt)) await this.client.pause(this.random.between(50, 1_500));
    this.callsUnderway -= 1;
  }

  private async mustRepeat(attempt: () => Promise<void>): Promise<boolean> {
    try {
      await attempt();
      return false;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return error.isUnanswered && !this.random.chance(0.1);
    }
  }

  private nextRequestId(): string {
    this.requests += 1;
    return `request-${this.requests}`;
  }

  private compose(): Submission {
    const { random, cluster } = this;
    const requestId = this.nextRequestId();
    const machines = cluster.gpus.length;
    const isGang = machines > 1 && random.chance(0.45);
    // Now and then one that asks for more than there is.
    const nodes = isGang ? random.between(2, machines + (random.chance(0.05) ? 1 : 0)) : 1;
    const gpusMax = isGang ? Math.min(...cluster.gpus) : Math.max(...cluster.gpus);
    const gpus = random.chance(0.15) ? 0 : random.between(1, gpusMax + (random.chance(0.05) ? 1 : 0));
    const minNodes = isGang && random.chance(0.3) ? random.between(1, nodes) : nodes;
    const program = this.composeProgram(nodes);
    const isEndless = program.runMs === null;
    const known = [...this.acknowledged];
    const name = `job-${requestId.slice(8)}`;
    const file: JobSpecFile = {
      name,
      command: ['simulate', JSON.stringify(program)],
      resources: { nodes: minNodes === nodes ? nodes : { min: minNodes, max: nodes }, gpus },
      priority: random.pick([0, 50, 50, 50, 100]),
      stop_grace: `${random.pick([0, 200, 1_000, 3_000, 15_000])}ms`,
      retry: this.composeRetry(),
      ...(random.chance(0.5) && { preemptible: true }),
      // One directory for all jobs of an array would be a mistake of theirs.
      ...this.composePlace(program, `${sharedRoot}${name}`),
      ...this.composeGuards(isGang),
      ...((isEndless ? random.chance(0.5) : random.chance(0.1)) && {
        max_runtime: `${random.between(1_000, 4_000)}ms`,
      }),
      ...this.composePhases(program),
      ...(random.chance(0.08) &&
        known.length > 0 && { after: [`${random.pick(known)}${endings[known.length % endings.length]}`] }),
    };
    return { name, requestId, file, program, nodes: minNodes, gpus };
  }

  /** Where it runs, and where it saves. */
  private composePlace({ saveEveryMs }: Program, directory: string): Partial<JobSpecFile> {
    const { random } = this;
    const isNamed = saveEveryMs !== null && random.chance(0.4);
    // What a container writes inside itself is gone with it, so what saves there has a volume.
    const mayBeContainer = saveEveryMs === null || isNamed;
    const isContainer = random.chance(0.25) && mayBeContainer;
    return {
      ...(isNamed && { checkpoint: { dir: directory } }),
      ...(isContainer && { image: 'simulated:1' }),
      ...(isContainer && isNamed && { volumes: [`${sharedRoot}:${sharedRoot}`] }),
    };
  }

  /** What simulated programs print has no metrics: all that a criterion asks of them is unknown. */
  private composePhases({ runMs }: Program): Partial<JobSpecFile> {
    const { phaseChance, phaseRandom: random } = this.cluster;
    if (phaseChance === 0 || !random.chance(phaseChance) || runMs === null) return {};
    const count = random.between(1, 4);
    const phases = Array.from({ length: count }, (_, index) => {
      const phase = { name: `phase-${index}`, steps: random.between(1, 100) };
      const success = random.pick([null, 'true', 'true', 'false', 'eval_loss < 3.0']);
      if (success === null) return phase;
      const extend = {
        steps: 10,
        max: random.between(1, 2),
        finally: random.pick(['continue', 'stop'] as const),
      };
      return random.chance(0.4)
        ? { ...phase, success, extend }
        : { ...phase, success, unmet: random.pick(['continue', 'continue', 'stop'] as const) };
    });
    return { phases };
  }

  private composeRetry(): NonNullable<JobSpecFile['retry']> {
    const { random } = this;
    const some = simulatedCauses.filter(() => random.chance(0.6));
    return {
      max_attempts: random.between(1, 5),
      backoff: { initial: '200ms', max: '2s' },
      on: random.chance(0.5) ? [...simulatedCauses] : random.chance(0.7) ? some : ['node_lost'],
      breaker: { failures: random.between(1, 4), pause: `${random.pick([0, 1_000, 4_000])}ms` },
      ...(random.chance(0.3) && { max_preemptions: random.between(0, 2) }),
    };
  }

  /** What a job wants of leases, deadlines and preflights. */
  private composeGuards(isGang: boolean): Partial<JobSpecFile> {
    const { random } = this;
    return {
      ...(random.chance(0.15) && { node_loss: 'hold' as const }),
      ...(random.chance(0.15) && { on_lease_expiry: 'kill' as const }),
      ...(random.chance(0.1) && { lease: random.pick(['10s', '20s']) }),
      ...(isGang && random.chance(0.25) && { preflight: random.pick([true, { min_bandwidth_mbps: 1_000 }]) }),
      // Images may take longer than some of these.
      prepare_timeout: random.chance(0.3) ? random.pick(['4s', '8s', '20s']) : '45s',
      rendezvous_timeout: '5s',
    };
  }

  private composeProgram(nodes: number): Program {
    const { random } = this;
    const exitCode = random.chance(0.3) ? random.pick([1, 1, 137]) : 0;
    const saves = random.chance(0.6);
    // When one rank of a gang is gone, the others often wait for it in a collective for ever.
    const isEndless = random.chance(exitCode !== 0 && nodes > 1 ? 0.4 : 0.06);
    return {
      runMs: isEndless
        ? null
        : random.between(1, random.pick([50, 2_000, 2_000, 2_000, 8_000, 8_000, 25_000])),
      exitCode,
      failsAfterMs: random.between(1, 3_000),
      failingRank: random.chance(0.7) ? random.between(0, nodes - 1) : null,
      succeedsFromAttempt: random.between(1, 5),
      failsTogether: random.chance(0.5),
      onStop: random.pick(['exit', 'save', 'ignore']),
      saveMs: random.chance(0.8) ? random.between(50, 900) : random.between(900, 12_000),
      outputBytes: random.chance(0.7) ? random.between(1, 10_000) : 0,
      lingerMs: random.chance(0.6) ? 0 : random.between(100, 30_000),
      saveEveryMs: saves ? random.between(200, 3_000) : null,
      failureKind: random.chance(0.6) ? random.pick(printedCauses) : null,
      startError: random.chance(0.04) ? random.pick(['command_not_found', 'image_pull']) : null,
      failsWhen: random.pick(['prepared', 'started']),
    };
  }
}
