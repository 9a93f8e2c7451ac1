/** Tracing as it is configured. This file loads OpenTelemetry. */
import { musterVersion } from '@muster/common/version';
import type { RunningFollower } from '../events/follower.ts';
import type { OtlpOptions } from '../options.ts';
import { openOtlp, ratioSampler } from './otlp.ts';
import { startTracer, type TracerParts, usualTracerTiming } from './tracer.ts';

export function openTracing({ url, ratio }: OtlpOptions) {
  const isSampled = ratioSampler(ratio);
  return {
    isSampled,
    start(
      parts: Omit<TracerParts, 'exporter' | 'isSampled' | 'shown' | 'timing'> & {
        readonly clusterId: string;
      },
    ): RunningFollower {
      const { answerMs: timeoutMs } = usualTracerTiming;
      const exporter = openOtlp({ url, clusterId: parts.clusterId, version: musterVersion, timeoutMs });
      return startTracer({ ...parts, exporter, isSampled, shown: url });
    },
  };
}
