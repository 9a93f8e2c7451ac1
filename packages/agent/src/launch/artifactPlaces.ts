/** Where the files of a task's artifacts are on its node, and where the task finds them. */
import { dirname, join } from 'node:path';
import type { ArtifactsSpec } from '@muster/common/spec/artifactFields';
import type { VolumeMount } from '../drivers/driver.ts';

const rootInContainer = '/.muster/artifacts';

export interface ArtifactPlaces {
  /** On the node: of both, in the directory of the task. The agent's alone to write to. */
  readonly root: string;
  readonly inputs: string;
  readonly outputs: string;
  /** The root, as the task sees it. */
  readonly seen: string;
}

/** @param directory of the task */
export function artifactPlaces(directory: string, inContainer: boolean): ArtifactPlaces {
  const root = join(directory, 'artifacts');
  return {
    root,
    inputs: join(root, 'inputs'),
    outputs: join(root, 'outputs'),
    seen: inContainer ? rootInContainer : root,
  };
}

/** The directories on the node that must exist before the program starts, parents first. */
export function outputDirectories(
  { outputs: root }: Pick<ArtifactPlaces, 'outputs'>,
  { outputs }: Pick<ArtifactsSpec, 'outputs'>,
): readonly string[] {
  const directories = new Set([root]);
  for (const { type, path } of outputs) {
    const parts = (type === 'directory' ? path : dirname(path)).split('/').filter((part) => part !== '.');
    for (let count = 1; count <= parts.length; count += 1)
      directories.add(join(root, ...parts.slice(0, count)));
  }
  return [...directories];
}

export function artifactVolumes({ inputs, outputs }: ArtifactPlaces): readonly VolumeMount[] {
  return [
    { source: inputs, target: `${rootInContainer}/inputs`, readOnly: true },
    { source: outputs, target: `${rootInContainer}/outputs`, readOnly: false },
  ];
}
