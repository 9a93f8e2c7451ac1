/**
 * Memory sizes. One MB is 1,048,576 bytes throughout, as in nvidia-smi and Docker, so `64G` is 65,536 MB and matches
 * what the tools next to Muster show.
 */

const unitsMb = { K: 1 / 1024, M: 1, G: 1024, T: 1024 * 1024 } as const;

export const sizeForm = 'a size with its unit, such as "64G" or "512M"';

/**
 * A number alone is no size: who types `--memory 4` means gigabytes, and 4 MB end as a job that nobody understands.
 * @returns whole MB ≥ 1, or null for text that is no size with a unit or not a whole number of MB
 */
export function parseSizeMb(text: string): number | null {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?([KMGT])(?:i?B)?$/i.exec(text.trim());
  if (!match) return null;
  const [, amount, unit = ''] = match;
  const megabytes = Number(amount) * unitsMb[unit.toUpperCase() as keyof typeof unitsMb];
  return Number.isSafeInteger(megabytes) && megabytes >= 1 ? megabytes : null;
}
