/** The spec that an attempt runs with: its phase filled in, so that agents know nothing of phases. Pure. */
import { paramsInPhase, phaseTarget, phaseUnitOf } from '@muster/common/phases';
import { scaledParam } from '@muster/common/scales';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';
import { ownSpec } from './ownSpec.ts';

/**
 * The job's own spec with the parameters of its phase. Command and args may use `{phase}`, `{phase_index}`, `{phase_steps}` or
 * `{phase_tokens}`, `{phase_start}` and `{phase_end}`; the environment has the same, and each parameter as `MUSTER_PARAM_name`. What the
 * user has set himself stays.
 */
export function attemptSpec(job: Pick<Job, 'spec' | 'array' | 'phase' | 'batchScale' | 'lrScale'>): JobSpec {
  const spec = ownSpec(job);
  const { phase } = job;
  const current = phase === null ? undefined : spec.phases[phase.index];
  if (phase === null || current === undefined) return spec;
  const target = phaseTarget(current, phase.extensions);
  const unit = phaseUnitOf(spec.phases);
  const place = {
    phase: current.name,
    phase_index: phase.index,
    [`phase_${unit}`]: target,
    phase_start: phase.start,
    phase_end: phase.start + target,
  };
  const params = paramsInPhase(spec, phase.index);
  const variables = Object.entries(place).map(([name, value]) => [
    `MUSTER_${name.toUpperCase()}`,
    String(value),
  ]);
  const shown = Object.entries(params).map(([name, value]) => [
    `MUSTER_PARAM_${name}`,
    scaledParam(name, value, job),
  ]);
  return {
    ...spec,
    phases: [],
    params: { ...place, ...params },
    env: {
      ...Object.fromEntries([...variables, ['MUSTER_PHASES', String(spec.phases.length)], ...shown]),
      ...spec.env,
    },
  };
}
