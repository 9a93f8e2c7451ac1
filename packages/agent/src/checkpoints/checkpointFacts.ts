/** What an agent has found out about a checkpoint, by its looks at the files and by reading it. Pure. */
import type { Verification } from '@muster/checkpoints/verification';
import type { CheckpointFacts } from '@muster/common/checkpoints';
import { type CheckpointObservation, writtenForMs } from './observations.ts';

/** @param metricsAt what the output of the task contained around a step; null: now */
export function checkpointFactsOf(
  observation: CheckpointObservation,
  found: Omit<Verification, 'version'>,
  metricsAt: (step: number | null) => CheckpointFacts['metrics'],
): CheckpointFacts {
  const { candidate } = observation;
  const { verdict, depth, format, digest, problem } = found;
  const step = found.step ?? candidate.step;
  const { name, version, bytes, files, savedAtMs } = candidate;
  return {
    name,
    version,
    step,
    bytes,
    files,
    savedAtMs,
    digest,
    verdict,
    depth,
    problem,
    reread: false,
    format: format === 'unknown' ? candidate.format : format,
    saveDurationMs: writtenForMs(observation),
    metrics: metricsAt(step),
    ...(found.fingerprint === undefined ? {} : { fingerprint: found.fingerprint }),
  };
}
