/** Reads values of a sweep file, and collects what is wrong with them. */
import { isMapping, type SpecPath } from '@muster/common/spec/path';
import { describeValue, type Finding } from '@muster/common/spec/problems';
import { closest } from '@muster/common/spec/suggest';

export type FileMapping = Readonly<Record<string, unknown>>;

export class FileReader {
  readonly findings: Finding[] = [];

  /** @param expected what should stand there */
  wrong(path: SpecPath, value: unknown, expected: string, suggestion: string | null = null): void {
    this.findings.push({ path, at: 'value', message: describeValue(value), expected, suggestion });
  }

  /** A value of the right form that does not go with the others. */
  contradiction(path: SpecPath, message: string, expected: string | null = null): void {
    this.findings.push({ path, at: 'value', message, expected, suggestion: null });
  }

  /** @returns null: it is no mapping @param keys that it may have */
  mapping(path: SpecPath, value: unknown, keys: readonly string[], expected: string): FileMapping | null {
    if (!isMapping(value)) {
      this.wrong(path, value, expected);
      return null;
    }
    for (const key of Object.keys(value)) {
      if (keys.includes(key)) continue;
      const suggestion = closest(key, keys);
      const listed = suggestion === null ? `one of ${keys.join(', ')}` : null;
      this.findings.push({
        path: [...path, key],
        at: 'key',
        message: 'unknown key',
        expected: listed,
        suggestion,
      });
    }
    return value;
  }

  word<const Word extends string>(
    path: SpecPath,
    value: unknown,
    words: readonly Word[],
    preset: Word,
  ): Word {
    if (value === undefined) return preset;
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const meant = typeof value === 'string' ? closest(value, words) : null;
    this.wrong(path, value, words.join(', '), meant);
    return preset;
  }

  /** @returns `preset` where nothing, or nothing right, is given */
  wholeNumber<Preset>(
    path: SpecPath,
    value: unknown,
    [min, max]: readonly [number, number],
    preset: Preset,
  ): number | Preset {
    if (value === undefined) return preset;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    this.wrong(path, value, `a whole number from ${min} to ${max}`);
    return preset;
  }

  yesOrNo(path: SpecPath, value: unknown): boolean {
    if (value === undefined || typeof value === 'boolean') return value ?? false;
    this.wrong(path, value, 'true or false');
    return false;
  }
}
