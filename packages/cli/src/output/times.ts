/** Times and sizes for people; programs get the numbers through `-o json`. */

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Two units at most: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. Negative counts as nothing. */
export function durationText(durationMs: number): string {
  const ms = Math.max(0, durationMs);
  if (ms < 10 * secondMs) return `${Math.floor(ms / 100) / 10} s`;
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`;
  if (ms < hourMs) return pair(ms, minuteMs, 'min', secondMs, 's');
  if (ms < dayMs) return pair(ms, hourMs, 'h', minuteMs, 'min');
  return pair(ms, dayMs, 'd', hourMs, 'h');
}

/** How long something is valid, up to the next full minute: the answer that named its end took a moment to arrive. */
export function validityText(untilMs: number, nowMs: number): string {
  return durationText(Math.ceil((untilMs - nowMs) / minuteMs) * minuteMs);
}

function pair(ms: number, unitMs: number, unit: string, smallMs: number, small: string): string {
  const rest = Math.floor((ms % unitMs) / smallMs);
  return `${Math.floor(ms / unitMs)} ${unit}${rest === 0 ? '' : ` ${rest} ${small}`}`;
}

/** Of one step, or of what takes as long: `840 µs`, `49.6 ms`, `2.41 s`. */
export function shortTimeText(seconds: number): string {
  const digits = (value: number) => String(Number(value.toPrecision(3)));
  if (seconds >= 1 || seconds <= 0) return `${digits(seconds)} s`;
  return seconds >= 0.001 ? `${digits(seconds * 1_000)} ms` : `${digits(seconds * 1_000_000)} µs`;
}

/** `just now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. A clock that runs ahead of ours shows as `just now`. */
export function agoText(thenMs: number, nowMs: number): string {
  const ms = nowMs - thenMs;
  if (ms < 2 * secondMs) return 'just now';
  const [unit, unitMs] = (
    [
      ['d', dayMs],
      ['h', hourMs],
      ['min', minuteMs],
    ] as const
  ).find(([, size]) => ms >= size) ?? ['s', secondMs];
  return `${Math.floor(ms / unitMs)} ${unit} ago`;
}

/** Local time to the second, such as `2026-03-01 14:05:09`. */
export function clockText(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `812 B`, `1.4 KiB`, `100 MiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** @param memoryMb MiB */
export function memoryText(memoryMb: number): string {
  return bytesText(memoryMb * 1024 * 1024);
}
