/** What an agent would find wrong with the GPUs of this machine at its first look, for `muster doctor`. */
import { systemClock } from '@muster/common/clock';
import type { Condition } from '@muster/common/conditions';
import type { GpuSourceName } from '@muster/common/hardware';
import type { GpuListing, GpuSampling } from '../gpus/gpuSource.ts';
import type { ConditionTable } from '../health/conditionTable.ts';
import { evaluateConditions, visibleConditions } from '../health/evaluate.ts';
import { problemConditionKinds } from '../health/observed.ts';
import { emptyHealthState, type Moment } from '../health/state.ts';
import type { DoctorCheck } from './doctorReport.ts';

/**
 * By the same rules as the agent's. Problems of the source are left out, because they are told by themselves, and so is
 * what shows only in the course of time.
 */
export function examineGpuHealth(
  about: Pick<DoctorCheck, 'area' | 'name' | 'chosen'>,
  seen: { readonly source: GpuSourceName; readonly listing: GpuListing; readonly sampling: GpuSampling },
  table: ConditionTable,
): readonly DoctorCheck[] {
  const { source, listing, sampling } = seen;
  const now: Moment = { wallMs: systemClock.wallMs(), uptimeMs: systemClock.monotonicMs() };
  const observation = {
    gpus: listing.gpus,
    gpuDriver: { source, profilingSource: null, driverVersion: null, cudaVersion: null },
    samples: new Map(sampling.samples.map((sample) => [sample.uuid, sample])),
    problems: [...listing.problems, ...sampling.problems],
    holders: new Map(),
    atMs: now.wallMs,
  };
  const state = evaluateConditions(
    emptyHealthState('doctor'),
    { kind: 'observation' },
    { table, observation, now },
  );
  return visibleConditions(state)
    .filter(({ kind }) => !problemConditionKinds.has(kind))
    .map((condition) => ({ ...about, ...checkOf(condition) }));
}

function checkOf({
  severity,
  message,
  evidence,
}: Condition): Pick<DoctorCheck, 'state' | 'message' | 'evidence' | 'remedy'> {
  return { state: severity === 'critical' ? 'problem' : 'warning', message, evidence, remedy: null };
}
