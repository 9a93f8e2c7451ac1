/** @returns null: more digits than a number holds exactly */
export function stepFrom(digits: string): number | null {
  const step = Number(digits);
  return Number.isSafeInteger(step) ? step : null;
}
