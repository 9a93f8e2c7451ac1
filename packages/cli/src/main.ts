/** The `muster` program: wiring, nothing else. */
import { readFileSync } from 'node:fs';
import { endProcess } from '@muster/common/endProcess';
import { privateVariables, readEnvironment } from './environment.ts';
import { processIo } from './processIo.ts';
import { runCli } from './program.ts';

const environment = readEnvironment(process.env, process.argv[1] ?? '', process.cwd());
// Programs that this one starts would inherit them, and show them to anyone who may look at those.
for (const name of privateVariables) delete process.env[name];

// No `await` at the top: in the bundle of short commands this is a script.
void runCli(process.argv.slice(2), {
  io: processIo(),
  environment,
  clock: { wallMs: Date.now, monotonicMs },
  // Nobody waits longer for the Tab key.
  completionWaitMs: 1_000,
  newRequestId,
  // Everything has been written and closed.
}).then(endProcess);

/** Not from `performance`, which Node loads at its first use, with ten modules more. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

/** From the kernel where it offers them: Node's cryptography takes 5 ms to load, a tenth of a whole submit. */
function newRequestId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/uuid', 'latin1').trim();
  } catch {
    return crypto.randomUUID();
  }
}
