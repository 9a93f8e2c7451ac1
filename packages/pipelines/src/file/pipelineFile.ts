/** The pipeline file: from a plain value to a checked pipeline. Conditions are checked by who can evaluate them. */
import type { Finding } from '@muster/common/spec/problems';
import { checkJobSpec } from '@muster/common/spec/validate';
import { type FileMapping, FileReader } from '@muster/experiments/file/findings';
import { type PipelineSpec, stepGroups } from '../model.ts';
import { checkStoredOutputs, readArtifacts } from './artifactPlace.ts';
import { checkGraph } from './graph.ts';
import { readParams } from './parameters.ts';
import { readSteps } from './steps.ts';
import { checkWork } from './work.ts';

export type PipelineFileResult =
  | { readonly ok: true; readonly pipeline: PipelineSpec }
  | { readonly ok: false; readonly findings: readonly Finding[] };

const parallelMax = 1_000;
const keys = [
  'name',
  'project',
  'workdir',
  'env',
  'params',
  'artifacts',
  'code',
  'parallel',
  ...stepGroups,
] as const;

/** Everything that is wrong is found at once. */
export function readPipeline(value: unknown): PipelineFileResult {
  const reader = new FileReader();
  const file = reader.mapping([], value, keys, 'a pipeline: name and steps');
  if (file === null) return { ok: false, findings: reader.findings };
  const params = readParams(reader, file['params']);
  const read = stepGroups.flatMap((group) => readSteps(reader, group, file[group]));
  const pipeline = {
    name: readName(reader, file['name']),
    ...readCommon(reader, file),
    params,
    artifacts: readArtifacts(
      reader,
      file['artifacts'],
      params.map(({ name }) => name),
    ),
    code: readCode(reader, file['code']),
    parallel: reader.wholeNumber(['parallel'], file['parallel'], [1, parallelMax], null),
    steps: checkGraph(reader, read, params),
  };
  const needsRoot = pipeline.steps.find(({ outputs }) => outputs.some(({ path }) => !path.startsWith('/')));
  if (needsRoot !== undefined && file['artifacts'] === undefined)
    reader.wrong(
      ['artifacts'],
      undefined,
      `a directory that all nodes share, or an S3-compatible store, for the outputs of ${needsRoot.name}; or absolute paths for them`,
    );
  checkStoredOutputs(reader, pipeline);
  for (const step of pipeline.steps) checkWork(reader, step, params);
  return reader.findings.length > 0 ? { ok: false, findings: reader.findings } : { ok: true, pipeline };
}

function readName(reader: FileReader, value: unknown): string {
  if (typeof value === 'string' && /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(value)) return value;
  reader.wrong(
    ['name'],
    value,
    '1 to 63 lower-case letters, digits and "-", with a letter or digit at both ends',
  );
  return '';
}

/** What job files have, too. */
function readCommon(
  reader: FileReader,
  file: FileMapping,
): Pick<PipelineSpec, 'project' | 'workdir' | 'env'> {
  const given = Object.entries(file).filter(([key]) => ['project', 'workdir', 'env'].includes(key));
  const checked = checkJobSpec({ command: ['true'], ...Object.fromEntries(given) });
  if (checked.ok) {
    const { project, workdir, env } = checked.spec;
    return { project, workdir, env };
  }
  reader.findings.push(...checked.findings);
  return { project: 'default', workdir: null, env: {} };
}

function readCode(reader: FileReader, value: unknown): PipelineSpec['code'] {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '') return { directory: value };
  const form = 'a directory, such as ./src, or {digest: TEXT}';
  const file = reader.mapping(['code'], value, ['digest'], form);
  const digest = file?.['digest'];
  if (typeof digest === 'string' && /^[\w:.-]{1,200}$/.test(digest)) return { digest };
  if (file !== null) reader.wrong(['code', 'digest'], digest, 'letters, digits, ":", "." and "-"');
  return null;
}
