/** Where a pipeline file says that the outputs of its steps are kept. */
import { isMapping } from '@muster/common/spec/path';
import { checkJobSpec } from '@muster/common/spec/validate';
import type { FileReader } from '@muster/experiments/file/findings';
import type { ArtifactPlace, PipelineSpec, PipelineStep } from '../model.ts';
import { substitute } from '../substitute.ts';
import { checkParamsOnly } from './graph.ts';

const keys = ['url', 'endpoint', 'region', 'path_style', 'secret'] as const;
const form =
  'the absolute path of a directory that all nodes share, or a store such as {url: s3://models/runs, secret: s3}';

export function readArtifacts(
  reader: FileReader,
  value: unknown,
  paramNames: readonly string[],
): ArtifactPlace | null {
  if (value === undefined) return null;
  if (isMapping(value)) return readStore(reader, value, paramNames);
  if (typeof value === 'string' && /^(?:\/|\$\{params\.)/.test(value) && !value.split('/').includes('..')) {
    checkParamsOnly(reader, ['artifacts'], value, paramNames);
    return { kind: 'directory', path: value.length > 1 ? value.replace(/\/+$/, '') : value };
  }
  const isUrl = typeof value === 'string' && value.startsWith('s3:');
  reader.wrong(['artifacts'], value, form, isUrl ? `{url: ${value}, secret: NAME}` : null);
  return null;
}

/** Its settings are those of a job, and are checked as such. */
function readStore(
  reader: FileReader,
  value: Readonly<Record<string, unknown>>,
  paramNames: readonly string[],
): ArtifactPlace | null {
  const path = ['artifacts'];
  const file = reader.mapping(path, value, keys, form);
  const url = file?.['url'];
  if (file === null) return null;
  if (typeof url === 'string') checkParamsOnly(reader, [...path, 'url'], url, paramNames);
  const known = Object.fromEntries(
    keys.flatMap((key) => (file[key] === undefined ? [] : [[key, file[key]]])),
  );
  const samples = Object.fromEntries(paramNames.map((name) => [name, 'x']));
  const filled = substitute(url, { params: samples, inputs: {}, outputs: {}, item: null });
  const trimmed = typeof filled === 'string' ? filled.replace(/\/+$/, '') : filled;
  const checked = checkJobSpec({
    command: ['true'],
    artifacts: { ...known, ...(url === undefined ? {} : { url: trimmed }) },
  });
  if (!checked.ok) {
    reader.findings.push(...checked.findings);
    return null;
  }
  const { artifacts } = checked.spec;
  if (artifacts === null) return null;
  const { endpoint, region, pathStyle, secret } = artifacts;
  return { kind: 'store', url: String(url).replace(/\/+$/, ''), endpoint, region, pathStyle, secret };
}

/** What a store cannot keep: files outside of the task's directory, and one object in the place of two. */
export function checkStoredOutputs(reader: FileReader, { artifacts, steps }: PipelineSpec): void {
  if (artifacts?.kind !== 'store') return;
  for (const step of steps) checkOutputs(reader, step);
}

function checkOutputs(reader: FileReader, { group, name: step, outputs }: PipelineStep): void {
  for (const [index, { name, path }] of outputs.entries()) {
    const at = [group, step, 'outputs', name, ...(path === name ? [] : ['path'])];
    if (path.startsWith('/'))
      reader.wrong(at, path, 'a path below the directory of the step: artifacts are in a store');
    const other = outputs
      .slice(0, index)
      .find((each) => isWithin(path, each.path) || isWithin(each.path, path) || isListOf(each.path, path));
    if (other !== undefined)
      reader.contradiction(
        at,
        `${path} and ${other.path} of ${other.name} would be in each other's place in the store`,
      );
  }
}

function isWithin(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}/`);
}

/** Beside a directory lies the list of its files. */
function isListOf(path: string, other: string): boolean {
  return path === `${other}.sha256` || other === `${path}.sha256`;
}
