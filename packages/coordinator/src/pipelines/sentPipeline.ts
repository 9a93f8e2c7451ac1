/** Pipelines and values of their parameters as clients send them. */
import { MusterError } from '@muster/common/errors';
import { specBytesMax } from '@muster/common/spec/limits';
import { isMapping } from '@muster/common/spec/path';
import { noOrigin, toProblems } from '@muster/common/spec/problems';
import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import type { PipelineSpec, PipelineValues } from '@muster/pipelines/model';
import { completeValues } from '@muster/pipelines/parameters';

/** @throws {MusterError} `invalid`, with every problem */
export function decodePipeline(text: string): { readonly text: string; readonly spec: PipelineSpec } {
  const bytes = Buffer.byteLength(text);
  if (bytes > specBytesMax)
    throw new MusterError('invalid', `the pipeline has ${bytes} bytes; at most ${specBytesMax}`);
  const value = decodeJson(text, 'spec_json');
  const read = readPipeline(value);
  if (read.ok) {
    const { code } = read.pipeline;
    if (code === null || 'digest' in code) return { text, spec: read.pipeline };
    throw refusal([
      {
        path: 'code',
        message: 'a directory is known where the pipeline is submitted',
        expected: 'its digest',
      },
    ]);
  }
  throw refusal(toProblems(read.findings.map((finding) => ({ finding, origin: noOrigin }))));
}

function refusal(
  problems: readonly {
    readonly path: string;
    readonly message: string;
    readonly expected: string | null;
    readonly suggestion?: string | null;
  }[],
): MusterError {
  const [first] = problems;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return new MusterError(
    'invalid',
    `invalid pipeline: ${first?.path ? `${first.path}: ` : ''}${first?.message ?? ''}${more}`,
    { problems: problems.map((each) => ({ suggestion: null, ...each })) },
  );
}

function decodeJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MusterError('invalid', `${field} is not JSON`, { cause: error });
  }
}

/** @throws {MusterError} `invalid`, with every problem */
export function decodeParams({ params }: PipelineSpec, text: string): PipelineValues {
  const complete = completeValues(params, decodeGiven(text));
  if (complete.ok) return complete.values;
  throw new MusterError('invalid', complete.problems.join('; '));
}

/** Values by name, not compared with the parameters. @throws {MusterError} `invalid` */
export function decodeGiven(text: string): Readonly<Record<string, unknown>> {
  if (Buffer.byteLength(text) > specBytesMax)
    throw new MusterError('invalid', `params_json: expected at most ${specBytesMax} bytes`);
  const given = text === '' ? {} : decodeJson(text, 'params_json');
  if (!isMapping(given))
    throw new MusterError('invalid', 'params_json: expected an object of values by name');
  return given;
}
