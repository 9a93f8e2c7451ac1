/** What the GPUs of an attempt did, in a few words. Pure. */
import type { GpuUsage } from '@muster/common/telemetry';
import { durationText, memoryText } from '../output/times.ts';
import { ratioText, valueText } from '../output/units.ts';

/** `avg 92 %, peak 100 %; SM 61 %, tensor 44 %; peak memory 71 GiB; 3.21 kWh; idle 5 min of 8 h GPU time`. */
export function usageText(usage: GpuUsage): string {
  const { utilizationMean, utilizationPeak, memoryPeakMb, energyKwh, idleGpuSeconds } = usage;
  const busy = [
    utilizationMean === null ? null : `avg ${valueText(utilizationMean, 'percent')}`,
    utilizationPeak === null ? null : `peak ${valueText(utilizationPeak, 'percent')}`,
  ];
  const activity = [
    usage.smActiveMean === null ? null : `SM ${ratioText(usage.smActiveMean)}`,
    usage.tensorActiveMean === null ? null : `tensor ${ratioText(usage.tensorActiveMean)}`,
  ];
  const parts = [
    joined(busy),
    joined(activity),
    memoryPeakMb === null ? '' : `peak memory ${memoryText(memoryPeakMb)}`,
    energyKwh === null ? '' : energyText(energyKwh),
    idleGpuSeconds === null
      ? ''
      : `idle ${durationText(idleGpuSeconds * 1_000)} of ${durationText(usage.observedGpuSeconds * 1_000)} GPU time`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function joined(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join(', ');
}

/** Three digits: a test run takes a few watt-hours, a training run megawatt-hours. */
function energyText(kwh: number): string {
  return kwh < 0.1 ? `${Number((kwh * 1_000).toPrecision(3))} Wh` : `${Number(kwh.toPrecision(3))} kWh`;
}
