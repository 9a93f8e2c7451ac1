/** A pipeline file as the file of another program. Pure. */
import { airflowDag } from '@muster/pipelines/export/airflow';
import { kubeflowPipeline } from '@muster/pipelines/export/kubeflow';
import { type ExportTarget, type UnmappedSetting, unmappedComment } from '@muster/pipelines/export/unmapped';
import type { PipelineSpec } from '@muster/pipelines/model';
import { stringify } from 'yaml';
import { CliError } from '../errors.ts';

export interface ExportedPipeline {
  readonly text: string;
  readonly unmapped: readonly UnmappedSetting[];
}

/** @param image of steps that have none @throws {CliError} Kubeflow runs containers alone, and a step has no image */
export function exportedPipeline(
  spec: PipelineSpec,
  target: ExportTarget,
  image: string | null,
): ExportedPipeline {
  if (target === 'airflow') return airflowDag(spec);
  const made = kubeflowPipeline(spec, image);
  if (made.withoutImage.length > 0)
    throw new CliError(
      `Kubeflow runs containers, and these steps have no image: ${made.withoutImage.join(', ')}`,
      {
        code: 'invalid',
        hints: ['Give the image of their jobs in the file, or one for all of them with --image.'],
      },
    );
  const head =
    '# Exported by muster pipeline export, for Kubeflow Pipelines v2 (PipelineSpec, schema 2.1.0).\n';
  const text = stringify(made.spec, { lineWidth: 0, aliasDuplicateObjects: false });
  return { text: `${head}${unmappedComment(made.unmapped)}${text}`, unmapped: made.unmapped };
}
