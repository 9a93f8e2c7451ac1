/**
 * Measures the paths of a gang before it starts: by a program in the job's own environment, which uses what the job will
 * use; where that has no Python or no PyTorch, by bytes between the agents.
 */

import { asListOf, asNumber, asObject, type Decoder, orNull } from '@muster/common/decoders';
import { messageOf } from '@muster/common/errors';
import type { PathCheck, Peer, PreflightResult } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import { isMapping } from '@muster/common/spec/path';
import type { TaskLaunch } from '../drivers/driver.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { PathError, type PeerAnswer } from './pathClient.ts';
import { loadBytesMax, type Question } from './pathProtocol.ts';
import { type PreflightPlan, preflightProgram, resultMark } from './preflightProgram.ts';

/**
 * Runs a program like a task until it ends.
 * @throws {DriverError} when it cannot be started, and the signal's reason when aborted; nothing of it is left then
 */
export type RunProgram = (
  task: TaskRef,
  launch: TaskLaunch,
  abort: AbortSignal,
) => Promise<{ readonly exitCode: number | null; readonly output: string }>;

export interface PreflightPeers {
  /** @throws {PathError} */
  readonly ask: (peer: Peer, question: Question, deadlineMs: number) => Promise<PeerAnswer>;
  /** Where the preflight meets, on rank 0. null: this is another rank. */
  readonly meetingPort: (() => Promise<number>) | null;
}

export interface PreflightInput {
  readonly task: TaskRef;
  readonly nodeName: string;
  readonly launch: TaskLaunch;
  readonly check: PathCheck & { readonly preflight: NonNullable<PathCheck['preflight']> };
  readonly peers: PreflightPeers;
  readonly runProgram: RunProgram;
  readonly abort: AbortSignal;
}

/** Of a measurement between agents. */
const loadDeadlineMs = 25_000;
const questionDeadlineMs = 5_000;
/** Above any real link; a number beyond it is a mistake or a lie. */
const bytesPerSMax = 1e13;

/** Never throws: what went wrong is the result. */
export async function runPreflight(input: PreflightInput): Promise<PreflightResult> {
  const { nodeName, check } = input;
  const deadline = AbortSignal.timeout(check.preflight.timeoutMs);
  const abort = AbortSignal.any([deadline, input.abort]);
  try {
    const measured = await measureByProgram({ ...input, abort });
    return measured ?? (await measureByAgents(input));
  } catch (error) {
    if (error instanceof PathError) return failed('tcp', error.message);
    if (input.abort.aborted) return failed('gloo', `${nodeName}: cancelled, because it is no longer needed`);
    if (deadline.aborted) {
      const seconds = check.preflight.timeoutMs / 1_000;
      return failed('gloo', `${nodeName}: the preflight did not end within ${seconds} s`);
    }
    return failed('gloo', `${nodeName}: ${messageOf(error)}`);
  }
}

function failed(backend: PreflightResult['backend'], error: string): PreflightResult {
  return { error, backend, pairs: [], allReduceBytesPerS: null };
}

/** @returns null: the job's environment has no Python, or Python has no PyTorch */
async function measureByProgram(input: PreflightInput): Promise<PreflightResult | null> {
  const { task, nodeName, launch, check, runProgram, abort } = input;
  const { timeoutMs, master } = check.preflight;
  const nameOfRank = (address: string, rank: number) =>
    rank === task.nodeRank ? nodeName : (nameOf(check.peers, rank) ?? `node rank ${rank} at ${address}`);
  const plan: PreflightPlan = {
    id: `${task.jobId}.${task.attempt}.${check.round}`,
    rank: task.nodeRank,
    nodes: check.addresses.length,
    names: check.addresses.map(nameOfRank),
    addr: master.addr,
    port: await meetingPort(input),
    // Together less than the whole, so that the program itself reports what it waits for.
    joinSeconds: Math.max(1, Math.floor(timeoutMs / 2_000)),
    stepSeconds: Math.max(1, Math.floor(timeoutMs / 3_000)),
  };
  const program: TaskLaunch = {
    ...launch,
    command: ['python3', '-c', preflightProgram, JSON.stringify(plan)],
    // The job's working directory may be where its own torch.py lies.
    workdir: null,
  };
  let output: string;
  try {
    const run = await runProgram(task, program, abort);
    // Exit codes of a shell or an entrypoint for a command that is not there.
    if (run.exitCode === 127 || run.exitCode === 126) return null;
    output = run.output;
  } catch (error) {
    if (error instanceof DriverError && error.causeKind === 'command_not_found') return null;
    throw error;
  }
  return readResult(output, nodeName);
}

function nameOf(peers: readonly Peer[], rank: number): string | null {
  return peers.find(({ nodeRank }) => nodeRank === rank)?.node ?? null;
}

/** Not the port of the job's own rendezvous: that stays held, and answers, until the launch. Rank 0 names another one. */
async function meetingPort({ peers, check }: PreflightInput): Promise<number> {
  if (peers.meetingPort !== null) return peers.meetingPort();
  const { addr, port } = check.preflight.master;
  const master = { nodeRank: 0, node: nameOf(check.peers, 0) ?? addr, address: addr, port };
  return (await peers.ask(master, { kind: 'preflight' }, questionDeadlineMs)).number;
}

/** The result that the program printed last. @returns null: it has no PyTorch */
export function readResult(output: string, nodeName: string): PreflightResult | null {
  const line = output.split('\n').findLast((each) => each.startsWith(resultMark));
  if (line === undefined)
    return failed('gloo', `${nodeName}: the preflight ended without a result: ${lastLine(output)}`);
  let result: unknown;
  try {
    result = JSON.parse(line.slice(resultMark.length));
  } catch {
    result = null;
  }
  if (!isMapping(result)) return failed('gloo', `${nodeName}: the preflight's result cannot be read`);
  if (typeof result['missing'] === 'string') return null;
  if (typeof result['error'] === 'string')
    return failed('gloo', `${nodeName}: ${result['error'].slice(0, 300)}`);
  return {
    error: null,
    backend: result['backend'] === 'nccl' ? 'nccl' : 'gloo',
    pairs: asListOf(asPair)(result['pairs']),
    allReduceBytesPerS: orNull(asRate)(result['allReduceBytesPerS']),
  };
}

function asWholeNumber(min: number, max: number): Decoder<number> {
  return (value) => {
    const number = asNumber(value);
    return Number.isInteger(number) && number !== undefined && number >= min && number <= max
      ? number
      : undefined;
  };
}

const asRate = asWholeNumber(1, bytesPerSMax);
const asPair = asObject<PreflightResult['pairs'][number]>({
  nodeRank: asWholeNumber(0, 99_999),
  bytesPerS: asRate,
});

function lastLine(output: string): string {
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  return line === '' ? 'it printed nothing' : line.slice(0, 300);
}

/**
 * To the next rank only, so that each link carries one measurement in each direction: all at once to rank 0 would measure
 * how they share its link.
 */
async function measureByAgents({ task, check, peers }: PreflightInput): Promise<PreflightResult> {
  const next = (task.nodeRank + 1) % check.addresses.length;
  const peer = check.peers.find(({ nodeRank }) => nodeRank === next);
  if (peer === undefined) return { error: null, backend: 'tcp', pairs: [], allReduceBytesPerS: null };
  const { answeredInMs } = await peers.ask(peer, { kind: 'load', bytes: loadBytesMax }, loadDeadlineMs);
  const bytesPerS = Math.round(loadBytesMax / (answeredInMs / 1_000));
  return { error: null, backend: 'tcp', pairs: [{ nodeRank: next, bytesPerS }], allReduceBytesPerS: null };
}
