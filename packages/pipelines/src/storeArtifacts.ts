/** The artifacts of a step in an S3-compatible store: what its job says of them, and where its program finds them. Pure. */
import type { ArtifactView } from '@muster/common/pipelines';
import { artifactsPlaceholder, outputUrl } from '@muster/common/spec/artifactFields';
import type { StoredArtifact } from '@muster/common/views';
import type { WantedArtifact } from './artifactScript.ts';
import type { ArtifactPlace } from './model.ts';

export type StorePlace = Extract<ArtifactPlace, { readonly kind: 'store' }>;

/** By name: artifacts of all instances of a step, or a text. */
type StepInputs = Readonly<Record<string, readonly ArtifactView[] | string>>;

/** The setting `artifacts` of a job file. @param url of the store, with what keeps the tries of steps apart */
export function artifactsOfJob(
  { endpoint, region, pathStyle, secret }: StorePlace,
  url: string,
  inputs: StepInputs,
  outputs: readonly WantedArtifact[],
): Readonly<Record<string, unknown>> {
  return {
    url,
    ...(endpoint === null ? {} : { endpoint }),
    region,
    path_style: pathStyle,
    secret,
    inputs: Object.entries(inputs).flatMap(([name, input]) =>
      typeof input === 'string'
        ? []
        : input.map(({ type, path, digest }, index) => ({
            name,
            type,
            url: path,
            digest,
            path: localPath(name, index, path),
          })),
    ),
    outputs: outputs.map(({ name, type, path }) => ({ name, type, path })),
  };
}

/** Where the program finds an input. */
export function inputPath(name: string, index: number, url: string): string {
  return `${artifactsPlaceholder}/inputs/${localPath(name, index, url)}`;
}

/** Where the program leaves an output. @param path below the directory of the step */
export function storedOutputPath(path: string): string {
  return `${artifactsPlaceholder}/outputs/${path}`;
}

/** With its own name, by which programs often tell its format. */
function localPath(name: string, index: number, url: string): string {
  return `${name}/${index}/${url.slice(url.lastIndexOf('/') + 1)}`;
}

/** What has become of the outputs of a job that has ended well. */
export function storedOutputs(
  url: string,
  { id, attempt }: { readonly id: string; readonly attempt: number },
  wanted: readonly WantedArtifact[],
  stored: readonly StoredArtifact[],
): readonly ArtifactView[] {
  return wanted.flatMap(({ name, type, path }) => {
    const found = stored.find((each) => each.name === name);
    if (found === undefined) return [];
    const { bytes, digest } = found;
    return [{ name, type, path: outputUrl({ url }, id, attempt, path), bytes, digest }];
  });
}
