/** Numbers and text of others, for people who read Markdown. */

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** `45 s`, `12 min`, `2 h 5 min`, `3 d 4 h`. Clocks that differ may have put a beginning into the future: that is now. */
export function roughDuration(ms: number): string {
  const atLeast = Math.max(0, ms);
  if (atLeast < minuteMs) return `${Math.floor(atLeast / secondMs)} s`;
  if (atLeast < hourMs) return `${Math.floor(atLeast / minuteMs)} min`;
  if (atLeast < dayMs) return twoUnits(atLeast, [hourMs, 'h'], [minuteMs, 'min']);
  return twoUnits(atLeast, [dayMs, 'd'], [hourMs, 'h']);
}

function twoUnits(
  ms: number,
  [large, largeName]: [number, string],
  [small, smallName]: [number, string],
): string {
  const rest = Math.floor((ms % large) / small);
  const whole = `${Math.floor(ms / large)} ${largeName}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallName}`;
}

/** Six significant digits are enough for a loss. */
export function figure(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** `49.6 ms`, `2.41 s`. */
export function stepTime(seconds: number): string {
  const digits = (value: number) => String(Number(value.toPrecision(3)));
  return seconds > 0 && seconds < 1 ? `${digits(seconds * 1_000)} ms` : `${digits(seconds)} s`;
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1.2 GiB`, in steps of 1,024, as everywhere else. */
export function byteSize(bytes: number): string {
  const power = bytes < 1_024 ? 0 : Math.floor(Math.log2(bytes) / 10);
  const unit = Math.min(power, byteUnits.length - 1);
  const scaled = bytes / 1_024 ** unit;
  return `${unit === 0 ? scaled : scaled.toFixed(1)} ${byteUnits[unit]}`;
}

const hoursDigits = 2;

export function gpuHours(gpuSeconds: number): string {
  return (gpuSeconds / 3_600).toFixed(hoursDigits);
}

/** Text of a program or a person as one line that means nothing to Markdown. */
export function markdownText(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ').replace(/[\\`*_[\]<>|#]/g, '\\$&');
}

/** A name as it must be typed. */
export function codeSpan(text: string): string {
  return `\`${text.replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ').replace(/[`|]/g, "'")}\``;
}
