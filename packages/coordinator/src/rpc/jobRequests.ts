/** What requests about jobs ask for: checked, and in the words of the coordinator. */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { ResumeChoice } from '@muster/common/checkpoints';
import { MusterError } from '@muster/common/errors';
import type { RequeueJobRequest__Output } from '@muster/common/gen/muster/v1/RequeueJobRequest';
import type { SubmitRequest__Output } from '@muster/common/gen/muster/v1/SubmitRequest';
import { arraySize } from '@muster/common/spec/array';
import { specBytesMax } from '@muster/common/spec/limits';
import { isMapping } from '@muster/common/spec/path';
import { encodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import { validateJobSpec } from '@muster/common/spec/validate';
import type { SubmitCommand } from '../commands/jobs.ts';

/** @param continued as `continuedFrom` has it */
export function withDigest<T extends Omit<SubmitCommand, 'digest'>>(
  request: T,
  from: ResumeChoice = { kind: 'newest' },
  continued: string | null = null,
): T & { readonly digest: string } {
  const intent = [encodeJobSpec(request.spec), request.requeuedFrom, from, continued];
  return { ...request, digest: intentDigest(intent) };
}

/** Of what a request asks for, in the words of the caller: a name may mean another job when it is sent again. */
export function intentDigest(intent: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(intent)).digest('hex');
}

/** @throws {MusterError} `invalid` when it is to begin from two places */
export function resumeChoiceOf({ fromStep, fromStart, fromName }: RequeueJobRequest__Output): ResumeChoice {
  const given = [fromStep, fromName, fromStart ? true : undefined].filter((each) => each !== undefined);
  if (given.length > 1)
    throw new MusterError(
      'invalid',
      'from_step, from_name and from_start exclude each other: give one of them',
    );
  if (fromStep !== undefined) return { kind: 'step', step: fromStep };
  if (fromName !== undefined) return { kind: 'name', name: fromName };
  return { kind: fromStart ? 'start' : 'newest' };
}

/** How many jobs a submit of it makes, as an array; 0: it makes one job. */
export function sizeOf({ array }: JobSpec): number {
  return array === null ? 0 : arraySize(array);
}

const pathLengthMax = 4_096;

/**
 * @returns a job as it was named, or an absolute path; null: it begins from nothing
 * @throws {MusterError} `invalid`
 */
export function continuedFrom(
  { resumeFromJob, resumeFromPath }: SubmitRequest__Output,
  { array }: JobSpec,
): string | null {
  if (resumeFromJob === undefined && resumeFromPath === undefined) return null;
  if (resumeFromJob !== undefined && resumeFromPath !== undefined)
    throw new MusterError('invalid', 'resume_from_job and resume_from_path exclude each other: give one');
  if (array !== null)
    throw new MusterError(
      'invalid',
      'resume_from: the jobs of an array cannot all continue from one checkpoint',
    );
  if (resumeFromPath === undefined) return resumeFromJob?.replace(/^\/+/, '') ?? null;
  const isPath = resumeFromPath.startsWith('/') && resumeFromPath.length <= pathLengthMax;
  if (isPath && !resumeFromPath.includes('\0'))
    return posix.normalize(resumeFromPath).replace(/(?<=.)\/+$/, '');
  throw new MusterError(
    'invalid',
    `resume_from_path: got ${JSON.stringify(resumeFromPath.slice(0, 60))}; expected an absolute path of at most ${pathLengthMax} characters`,
  );
}

/**
 * @param arrayCount of a client that gives it beside the spec
 * @throws {MusterError} `invalid`, with every problem
 */
export function decodeSpec(text: string, arrayCount?: number): JobSpec {
  if (Buffer.byteLength(text) > specBytesMax) {
    throw new MusterError(
      'invalid',
      `the spec has ${Buffer.byteLength(text)} bytes; at most ${specBytesMax}`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new MusterError('invalid', 'spec_json is not JSON', { cause: error });
  }
  if (arrayCount !== undefined && isMapping(value)) {
    if (value['array'] !== undefined)
      throw new MusterError('invalid', 'array_size: the spec says what array it is; give one of the two');
    value = { ...value, array: arrayCount };
  }
  const result = validateJobSpec(value);
  if (result.ok) return result.spec;
  const [first] = result.problems;
  const more = result.problems.length > 1 ? ` (and ${result.problems.length - 1} more)` : '';
  throw new MusterError(
    'invalid',
    `invalid spec: ${first?.path ? `${first.path}: ` : ''}${first?.message ?? ''}${more}`,
    { problems: result.problems },
  );
}
