import { numberIn } from './format.ts';

/** Python writes numbers that JSON does not have. A reader that refuses them misses exactly the steps that went wrong. */
const pythonNumber = /(?<=[:[,]\s?)-?(?:NaN|Infinity)(?=\s?[,}\]])/g;

/** @returns null where the text is not a JSON object */
export function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  return parsed(text) ?? (/NaN|Infinity/.test(text) ? parsed(text.replace(pythonNumber, '"nan"')) : null);
}

/**
 * @returns a string that is a number as that number; undefined for what no line of metrics holds, which a JSON null is,
 * too: programs write it for what they did not measure at that step
 */
export function valueIn(told: unknown): number | string | null | undefined {
  if (typeof told === 'string') {
    const value = numberIn(told);
    return value === undefined ? told : value;
  }
  return typeof told === 'number' ? told : undefined;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
