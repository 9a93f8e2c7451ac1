import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { compilePattern, type NamePattern } from '@muster/checkpoints/namePattern';
import { mayBePlace, recogniseName } from '@muster/checkpoints/names';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import type { Verification } from '@muster/checkpoints/verification';
import { verifyCheckpoint } from '@muster/checkpoints/verify';
import type { VerificationDepth } from '@muster/common/checkpoints';
import { messageOf } from '@muster/common/errors';
import type { CommandModule, Context } from '../context.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { abortOnStopRequest } from '../io.ts';
import { type Colours, coloursFor, type Style } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { bytesText } from '../output/times.ts';
import { absent, rateText } from '../output/units.ts';

interface CheckpointFlags extends OutputFlags {
  readonly quick?: true;
  readonly pattern?: NamePattern;
}

/** One line of what is printed. */
export interface VerifiedPath extends Verification {
  readonly path: string;
  readonly durationMs: number;
}

/** Where a checkpoint lies: its directory and its name in it. */
interface Place {
  readonly root: string;
  readonly name: string;
  /** From its name; null: what is in it may tell. */
  readonly step: number | null;
}

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(sub.createArgument('<action>', 'action').choices(['verify']));
    sub
      .argument('<path...>', 'checkpoints, or directories of them')
      .option('--quick', 'read headers and directories only; default: every byte')
      .option('--pattern <pattern>', 'name pattern of checkpoints, such as run-{step}.bin', pattern);
    withOutput(sub);
    sub.addHelpText(
      'after',
      '\nNeeds no coordinator, changes nothing, and never loads a pickle. A checkpoint is verified, corrupt, or unverified ' +
        'if its\nformat is unknown or it is being written. Exit code 1: one is corrupt.',
    );
  },
  run: verifyPaths,
};

function pattern(typed: string): NamePattern {
  const compiled = compilePattern(typed);
  if (compiled !== null) return compiled;
  throw usageError(
    `--pattern takes a relative path with at most one {step}, such as run-{step}.bin; got "${typed}"`,
  );
}

async function verifyPaths(
  context: Context,
  _verify: string,
  paths: readonly string[],
  flags: CheckpointFlags,
): Promise<ExitCode> {
  const { io, environment } = context;
  const depth: VerificationDepth = flags.quick === true ? 'quick' : 'deep';
  const places: Place[] = [];
  for (const path of paths) places.push(...(await placesAt(context, path, flags.pattern ?? null)));

  const isJson = flags.output === 'json';
  const colours = coloursFor(io.stdout, environment);
  const verified: VerifiedPath[] = [];
  const stop = abortOnStopRequest(io);
  try {
    for (const place of places) {
      const each = await verifyOne(context, place, depth, stop.signal);
      verified.push(each);
      // As they are found: hundreds of gigabytes take minutes.
      if (!isJson) await io.stdout.write(lineOf(each, depth, colours));
    }
  } catch (error) {
    if (stop.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    stop.dispose();
  }
  if (isJson) await writeJson(io.stdout, { checkpoints: verified });
  return verified.some(({ verdict }) => verdict === 'corrupt') ? exitCodes.problemFound : exitCodes.ok;
}

/** The checkpoint that it is, or those that it holds. A link on the way there is the user's own. */
async function placesAt(
  { io, environment }: Context,
  typed: string,
  namePattern: NamePattern | null,
): Promise<readonly Place[]> {
  const path = await realpath(resolve(environment.workingDir, typed)).catch((error: unknown) => {
    throw usageError(`cannot verify ${typed}: ${fileErrorReason(error) ?? messageOf(error)}`);
  });
  const itself: Place = { root: dirname(path), name: basename(path), step: null };
  const isDirectory = (await stat(path)).isDirectory();
  const isCalledSo = namePattern === null && recogniseName(itself.name, 'directory', null) !== null;
  if (!isDirectory || (isCalledSo && !mayBePlace(itself.name))) return [itself];
  const { candidates, problem } = await scanCheckpoints(path, { pattern: namePattern });
  if (problem !== null) await io.stderr.write(`${printable(typed)} ${printable(problem)}\n`);
  if (isCalledSo && !candidates.some(({ step }) => step !== null)) return [itself];
  if (candidates.length > 0) return candidates.map(({ name, step }) => ({ root: path, name, step }));
  if (namePattern === null) return [itself];
  throw new CliError(`${typed} holds no checkpoint named like ${namePattern.text}`, { code: 'not_found' });
}

async function verifyOne(
  { clock }: Context,
  { root, name, step }: Place,
  depth: VerificationDepth,
  signal: AbortSignal,
): Promise<VerifiedPath> {
  const startedAtMs = clock.monotonicMs();
  const verification = await verifyCheckpoint(root, name, { depth, signal });
  return {
    path: join(root, name),
    ...verification,
    step: step ?? verification.step,
    durationMs: Math.round(clock.monotonicMs() - startedAtMs),
  };
}

const verdictStyles: Readonly<Record<Verification['verdict'], Style>> = {
  verified: 'green',
  corrupt: 'red',
  unverified: 'yellow',
};

/** Columns of a fixed width, because the next line is not known yet. */
function lineOf(each: VerifiedPath, depth: VerificationDepth, colours: Colours): string {
  const wasRead = depth === 'deep' && each.digest !== null && each.durationMs > 0;
  const rate = rateText(wasRead ? (1_000 * each.bytes) / each.durationMs : null);
  const cells = [
    colours[verdictStyles[each.verdict]](each.verdict) +
      ' '.repeat('unverified'.length - each.verdict.length),
    (each.step === null ? absent : `step ${each.step}`).padEnd(12),
    bytesText(each.bytes).padStart(9),
    rate.padStart(11),
    printable(each.path) + (each.problem === null ? '' : `: ${printable(each.problem)}`),
  ];
  return `${cells.join('  ')}\n`;
}
