/** The probability that a normal distribution gives to an interval. */

/** Standard deviations. */
const negligible = 8.5;

/**
 * The natural logarithm of the mass between two numbers of standard deviations.
 * Relative error of the mass: below 1e-6 where the interval is wider than 1e-3, and as for its middle otherwise.
 */
export function logMass(from: number, to: number): number {
  // Most components of a density are far from both of its bounds.
  if (from < -negligible && to > negligible) return 0;
  // Where the tails meet, the difference of two numbers near 1 would be noise.
  if (from > 0) return logMass(-to, -from);
  const width = to - from;
  if (width < 1e-3) return Math.log(width) - ((from + to) / 2) ** 2 / 2 - logRootTwoPi;
  if (to <= 0) return Math.log(lowerTail(to) - lowerTail(from));
  // Beyond that a tail is lost beside 1, and its exponential need not be computed.
  const below = from < -negligible ? 0 : lowerTail(from);
  const above = to > negligible ? 0 : lowerTail(-to);
  return Math.log1p(-below - above);
}

export const logRootTwoPi = Math.log(2 * Math.PI) / 2;

/** The mass below a number of standard deviations, which is not positive. */
function lowerTail(deviations: number): number {
  return complementaryError(-deviations / Math.SQRT2) / 2;
}

/**
 * erfc of a number that is not negative, with a relative error below 1.2e-7: the Chebyshev fit of W. H. Press and others, Numerical
 * Recipes, section 6.2.
 */
function complementaryError(x: number): number {
  const t = 1 / (1 + x / 2);
  // Written out, because a loop over the coefficients takes twice as long.
  let sum = 0.17087277;
  sum = sum * t - 0.82215223;
  sum = sum * t + 1.48851587;
  sum = sum * t - 1.13520398;
  sum = sum * t + 0.27886807;
  sum = sum * t - 0.18628806;
  sum = sum * t + 0.09678418;
  sum = sum * t + 0.37409196;
  sum = sum * t + 1.00002368;
  sum = sum * t - 1.26551223;
  return t * Math.exp(-x * x + sum);
}
