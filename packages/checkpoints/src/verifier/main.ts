/**
 * The verifier: a process of its own, because reading checkpoints blocks, takes a core, and may hang where they lie on a file
 * server that is away. Ends when it is not needed, and at once when nobody can ask any longer.
 *
 *     verifier [seconds without work until it ends]
 */

import { endProcess } from '@muster/common/endProcess';
import { LineSplitter } from '@muster/common/lineSplitter';
import { verifyCheckpoint } from '../verify.ts';
import { type VerifierAnswer, type VerifierRequest, verifierLineLengthMax } from './protocol.ts';

type Order = Extract<VerifierRequest, { kind: 'verify' }>;

const idleMs = Number(process.argv[2] ?? 30) * 1_000;
const waiting: Order[] = [];
const controllers = new Map<number, AbortController>();
let isWorking = false;
/** Not before the first order, which is on its way: on a busy machine this process may be kept from reading it for long. */
let idleTimer: NodeJS.Timeout | undefined;

function startIdling(): NodeJS.Timeout {
  return setTimeout(() => endProcess(0), idleMs);
}

function answer(message: VerifierAnswer): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function receive(request: VerifierRequest): void {
  if (request.kind === 'abort') {
    controllers.get(request.id)?.abort();
    return;
  }
  controllers.set(request.id, new AbortController());
  waiting.push(request);
  void work();
}

async function work(): Promise<void> {
  if (isWorking) return;
  isWorking = true;
  clearTimeout(idleTimer);
  for (let order = waiting.shift(); order !== undefined; order = waiting.shift()) {
    answer(await carryOut(order));
    controllers.delete(order.id);
  }
  isWorking = false;
  idleTimer = startIdling();
}

async function carryOut({ id, root, name, depth, bytesPerSecondMax }: Order): Promise<VerifierAnswer> {
  const { signal } = controllers.get(id) ?? new AbortController();
  try {
    const options = { depth, signal, ...(bytesPerSecondMax !== null && { bytesPerSecondMax }) };
    return { kind: 'verified', id, verification: await verifyCheckpoint(root, name, options) };
  } catch (error) {
    if (signal.aborted) return { kind: 'aborted', id };
    throw error;
  }
}

const lines = new LineSplitter(verifierLineLengthMax);
process.stdin.setEncoding('utf8');
process.stdin.on('data', (part: string) => {
  for (const line of lines.push(part)) receive(JSON.parse(line) as VerifierRequest);
});
// The process that asked is gone, and nothing else needs the answer.
process.stdin.on('end', () => endProcess(0));
process.stdout.on('error', () => endProcess(0));
