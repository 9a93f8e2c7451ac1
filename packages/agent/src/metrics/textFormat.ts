/**
 * Prometheus' text format 0.0.4, from values that are read at the moment of the scrape. A library that counts for its
 * callers would not fit: these counters are counted by the kernel and the driver, and a page that stands in for that of
 * dcgm-exporter must write numbers as dcgm-exporter does.
 */

export type Labels = readonly (readonly [name: string, value: string])[];

export interface MetricSample {
  readonly labels: Labels;
  readonly value: number;
  /** Of the name: `_bucket`, `_sum` and `_count` of a histogram. */
  readonly suffix?: string;
}

export interface Family {
  readonly name: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly help: string;
  readonly rows: readonly MetricSample[];
  /** Default: the shortest text that is the same number. */
  readonly format?: (value: number) => string;
}

/** A series of one value without labels, or with these; none where the value was not read. */
export function oneRow(value: number | null | undefined, labels: Labels = []): readonly MetricSample[] {
  return value == null ? [] : [{ labels, value }];
}

/** A page must not grow with what a machine or a user can have many of. */
const rowsMax = 1024;
const labelCharactersMax = 256;

/** Families without rows are omitted: a series that is not there was not read. */
export function renderFamilies(families: readonly Family[]): string {
  /** Dozens of families share the labels of a GPU. */
  const rendered = new Map<Labels, string>();
  const labelText = (labels: Labels) => {
    const text = rendered.get(labels) ?? renderLabels(labels);
    rendered.set(labels, text);
    return text;
  };
  return families.map((family) => renderFamily(family, labelText)).join('');
}

function renderFamily(
  { name, type, help, rows, format = String }: Family,
  labelText: (labels: Labels) => string,
): string {
  const lines = new Map<string, string>();
  for (const { labels, value, suffix = '' } of rows) {
    // Prometheus refuses the whole page for one series that comes twice, and for a number it cannot read.
    const series = `${name}${suffix}${labelText(labels)}`;
    if (Number.isFinite(value) && !lines.has(series) && lines.size < rowsMax)
      lines.set(series, format(value));
  }
  if (lines.size === 0) return '';
  const samples = Array.from(lines, ([series, value]) => `${series} ${value}\n`).join('');
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${samples}`;
}

function renderLabels(labels: Labels): string {
  if (labels.length === 0) return '';
  return `{${labels.map(([name, value]) => `${name}="${escapeValue(value)}"`).join(',')}}`;
}

/** Model names, mount points and the like come from outside: neither a quote nor a line break may end the label. */
function escapeValue(text: string): string {
  return (
    text
      .slice(0, labelCharactersMax)
      // People read the page in terminals, too.
      .replaceAll(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, ' ')
      .replaceAll('\\', '\\\\')
      .replaceAll('\n', '\\n')
      .replaceAll('"', '\\"')
  );
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
