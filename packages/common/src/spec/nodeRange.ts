/** `1:4` and `1-4`: from so many nodes to so many, as flags say it. */
export interface NodeRange {
  readonly min: number;
  readonly max: number;
}

export const nodeRangeForm = 'a whole number from 1 to 1024, or a range such as 1:4';

/** null for what has not the form of a range; whether its numbers will do is for the schema to say. */
export function parseNodeRange(text: string): NodeRange | null {
  const [, min, max] = /^\s*(\d{1,6})\s*(?:[:-]|\.\.)\s*(\d{1,6})\s*$/.exec(text) ?? [];
  return min === undefined || max === undefined ? null : { min: Number(min), max: Number(max) };
}
