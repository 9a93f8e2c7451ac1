/** The setting about files that a task's agent fetches from an object store and keeps there: a part of the table in `fields.ts`. */
import { isSecretName, secretNameForm } from '../secrets.ts';
import { boolean, choice, field, mapping, optional, required, type SpecOf, text } from './kinds.ts';
import { mappingList } from './structures.ts';

export const artifactTypes = ['directory', 'file'] as const;

/** Inputs of a step with `for_each` before it can be many. */
const inputsMax = 10_000;
const outputsMax = 100;

const storePattern = /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[^/\p{Cc}]+)*$/u;
export const storeUrlForm = 's3://BUCKET/PREFIX, such as s3://models/experiments';
const endpointForm = 'an http or https URL without a path, such as https://s3.example.com:9000';
const regionForm = 'a region such as eu-central-1';
const secretForm = `the name of a secret of the project: ${secretNameForm}`;
const pathForm = 'a path below the directory of the task, such as data/train';

export function isStoreUrl(written: string): boolean {
  return storePattern.test(written) && written.length <= 900 && !hasRelativePart(written);
}

function isEndpoint(written: string): boolean {
  const url = /^https?:\/\//.test(written) ? URL.parse(written) : null;
  return url !== null && url.pathname === '/' && url.search + url.hash + url.username + url.password === '';
}

/** Of directories that nobody can leave by `..`, and that S3 and the file system name alike. */
function isPathBelow(written: string): boolean {
  return (
    /^[^/\p{Cc}]+(?:\/[^/\p{Cc}]+)*$/u.test(written) && written.length <= 900 && !hasRelativePart(written)
  );
}

function hasRelativePart(path: string): boolean {
  return path.split('/').some((part) => part === '.' || part === '..');
}

const storeUrl = text(/^s3:/, storeUrlForm, { refine: [isStoreUrl, storeUrlForm] });
const pathBelow = text(/^/, pathForm, { refine: [isPathBelow, pathForm] });
const artifactName = text(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'a name of letters, digits and "_"');
const type = required('type', choice(artifactTypes), { about: 'Whether it is a directory or a file.' });

/** Where an S3-compatible store is, and who may use it. Pipeline files have the same settings. */
export const storeFields = {
  url: required('url', storeUrl, {
    about: 'Bucket and prefix of the store: s3://BUCKET/PREFIX.',
  }),
  /** null: that of Amazon for the region. */
  endpoint: optional('endpoint', text(/^/, endpointForm, { refine: [isEndpoint, endpointForm] }), {
    about: 'Address of the store. Default: Amazon S3 in the region.',
  }),
  region: field('region', text(/^[a-z0-9-]{1,63}$/, regionForm), {
    default: 'us-east-1',
    about: 'Region of the bucket. Stores other than Amazon S3 mostly accept any.',
  }),
  pathStyle: field('path_style', boolean(), {
    default: ({ endpoint }) => endpoint !== undefined,
    about:
      'Whether the bucket is in the path of requests and not in the host name. Default: with an endpoint.',
  }),
  secret: required('secret', text(/^/, secretForm, { refine: [isSecretName, secretForm] }), {
    about:
      'Secret of the project with ACCESS_KEY_ID:SECRET_ACCESS_KEY. The agent uses it; the task never sees it.',
  }),
};

export type StoreSpec = SpecOf<typeof storeFields>;

const inputFields = {
  name: required('name', artifactName, { about: 'Name of the input, for messages.' }),
  type,
  url: required('url', storeUrl, { about: 'Where it is in the store.' }),
  digest: required('digest', text(/^sha256:[0-9a-f]{64}$/, 'a digest such as sha256:9f86d0…'), {
    about: 'Digest that it must have.',
  }),
  path: required('path', pathBelow, { about: 'Where the task finds it, below {muster_artifacts}/inputs.' }),
};

const outputFields = {
  name: required('name', artifactName, { about: 'Name of the output.' }),
  type,
  path: required('path', pathBelow, { about: 'Where the task leaves it, below {muster_artifacts}/outputs.' }),
};

/** Pipelines make it; what a job file says works alike. */
export const artifactFields = {
  ...storeFields,
  inputs: field('inputs', mappingList(inputFields, 'a list of inputs', inputsMax), {
    default: [],
    about: 'Fetched to every node before the program starts, and compared with their digests.',
  }),
  outputs: field('outputs', mappingList(outputFields, 'a list of outputs', outputsMax), {
    default: [],
    about:
      'Taken from rank 0 when its program has ended with 0, and kept below the URL in a directory named JOB-ATTEMPT.',
  }),
};

export type ArtifactsSpec = SpecOf<typeof artifactFields>;
export type InputSpec = ArtifactsSpec['inputs'][number];
export type OutputSpec = ArtifactsSpec['outputs'][number];

export const artifactSettings = mapping(
  artifactFields,
  'a mapping such as {url: s3://models/runs, secret: s3}',
);

/** What stands in commands and variables for the directory with the artifacts of a task. Only its node knows where that is. */
export const artifactsPlaceholder = '{muster_artifacts}';

/** Each attempt has a place of its own: what an attempt that was given up still writes, nobody reads. */
export function outputUrl(
  { url }: Pick<ArtifactsSpec, 'url'>,
  jobId: string,
  attempt: number,
  path: string,
): string {
  return `${url}/${jobId}-${attempt}/${path}`;
}
