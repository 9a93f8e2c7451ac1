/**
 * The probability of seeing one sample this much below another if both had the same distribution: the one-sided test of Mann and
 * Whitney in its normal approximation, which is good from some ten values on. Ties count half.
 */
export function chanceOfLower(lower: readonly number[], higher: readonly number[]): number {
  let wins = 0;
  for (const a of lower) for (const b of higher) wins += a < b ? 1 : a === b ? 0.5 : 0;
  const pairs = lower.length * higher.length;
  const deviation = Math.sqrt((pairs * (lower.length + higher.length + 1)) / 12);
  const z = (wins - pairs / 2) / deviation;
  // Abramowitz and Stegun, 26.2.17.
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const polynomial =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const tail = (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * polynomial;
  return z >= 0 ? tail : 1 - tail;
}
