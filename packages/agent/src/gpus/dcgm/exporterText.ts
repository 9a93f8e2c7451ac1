/**
 * Profiling values out of the page of a dcgm-exporter:
 *
 *     DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-5a…",device="nvidia0",GPU_I_PROFILE="1g.10gb",GPU_I_ID="9"} 0.910000
 *
 * Releases differ in their labels (spaces after commas, `uuid`, labels of Kubernetes) and in the names of the series.
 * Whatever is not understood is passed over line by line: a page holds hundreds of series that are of no interest here.
 */
import type { GpuActivity } from '../gpuSource.ts';
import { ActivityBuilder, type ActivityField, activityFields, readActivity } from './activityFields.ts';

export interface ExporterReading {
  /** Of the card. */
  readonly cardUuid: string;
  /** null: the card as a whole. */
  readonly gpuInstanceId: number | null;
  readonly activity: GpuActivity;
}

export interface ExporterPage {
  readonly readings: readonly ExporterReading[];
  /** Lines that are series of any kind; 0: this is no page of Prometheus. */
  readonly seriesCount: number;
}

const fieldsBySeries: ReadonlyMap<string, ActivityField> = new Map(
  activityFields.flatMap((field) => field.series.map((name) => [name, field] as const)),
);
/** Longer ones than any exporter writes cost more to look at than they can be worth. */
const lineCharactersMax = 4096;
const devicesMax = 1024;
/** A value, and possibly a time stamp. */
const endsInNumber = /\s(?:NaN|[+-]?Inf|[+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:\s+-?\d+)?$/;

export function parseExporterPage(text: string): ExporterPage {
  const builders = new Map<string, Omit<ExporterReading, 'activity'> & { builder: ActivityBuilder }>();
  let seriesCount = 0;
  for (const line of linesOf(text)) {
    const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*(?=[{ \t])/.exec(line)?.[0];
    if (name === undefined || !endsInNumber.test(line)) continue;
    seriesCount += 1;
    const field = fieldsBySeries.get(name);
    const series = field === undefined ? null : parseSeries(line.slice(name.length));
    const device = series === null ? null : deviceOf(series.labels);
    if (field === undefined || series === null || device === null) continue;
    const key = `${device.cardUuid}/${device.gpuInstanceId ?? ''}`;
    const found = builders.get(key) ?? { ...device, builder: new ActivityBuilder() };
    if (!builders.has(key) && builders.size >= devicesMax) continue;
    builders.set(key, found);
    found.builder.set(field.key, readActivity(field.unit, series.value));
  }
  const readings = [...builders.values()].map(({ builder, ...device }) => ({
    ...device,
    activity: builder.activity,
  }));
  return { readings, seriesCount };
}

function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    if (end - start <= lineCharactersMax) yield text.slice(start, end).trimEnd();
    start = end + 1;
  }
}

interface Series {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: string;
}

/** Labels and value, without the name. @returns null for another shape */
function parseSeries(text: string): Series | null {
  const labels = new Map<string, string>();
  const label = /[{,]\s*(?:([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*)?/y;
  let end = 0;
  while (text[end] === '{' || text[end] === ',') {
    label.lastIndex = end;
    const match = label.exec(text);
    if (match === null) return null;
    const [, name, value = ''] = match;
    if (name !== undefined) labels.set(name, unescaped(value));
    end = label.lastIndex;
  }
  if (labels.size > 0 && text[end] !== '}') return null;
  // A time stamp may follow the value.
  const value = /^\}?\s+(\S+)(?:\s+-?\d+)?$/.exec(text.slice(end))?.[1];
  return value === undefined ? null : { labels, value };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function deviceOf(labels: ReadonlyMap<string, string>): Omit<ExporterReading, 'activity'> | null {
  const cardUuid = labels.get('UUID') ?? labels.get('uuid') ?? labels.get('gpu_uuid');
  if (cardUuid === undefined || !/^GPU-[\w-]{1,90}$/.test(cardUuid)) return null;
  const instance = labels.get('GPU_I_ID') ?? '';
  if (instance === '') return { cardUuid, gpuInstanceId: null };
  return /^\d{1,3}$/.test(instance) ? { cardUuid, gpuInstanceId: Number(instance) } : null;
}
