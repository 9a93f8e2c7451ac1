/** Standard functions to minimise, as S. Surjanovic and D. Bingham list them (Virtual Library of Simulation Experiments). */
import type { SearchSpace } from '../space.ts';

export interface StandardFunction {
  readonly name: string;
  readonly bounds: readonly (readonly [min: number, max: number])[];
  /** Its least value. */
  readonly optimum: number;
  at(x: readonly number[]): number;
}

function cube(dimensions: number, min: number, max: number): readonly (readonly [number, number])[] {
  return Array.from({ length: dimensions }, () => [min, max] as const);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const hartmannWeights = [1, 1.2, 3, 3.2];

function hartmann(
  steepness: readonly (readonly number[])[],
  centres: readonly (readonly number[])[],
): (x: readonly number[]) => number {
  return (x) =>
    -sum(
      hartmannWeights.map(
        (weight, row) =>
          weight *
          Math.exp(
            -sum(
              x.map(
                (value, column) =>
                  (steepness[row]?.[column] ?? 0) * (value - (centres[row]?.[column] ?? 0)) ** 2,
              ),
            ),
          ),
      ),
    );
}

export const standardFunctions: readonly StandardFunction[] = [
  {
    name: 'sphere-5',
    bounds: cube(5, -5.12, 5.12),
    optimum: 0,
    at: (x) => sum(x.map((value) => value ** 2)),
  },
  {
    name: 'rosenbrock-4',
    bounds: cube(4, -5, 10),
    optimum: 0,
    at: (x) =>
      sum(
        x
          .slice(1)
          .map((next, index) => 100 * (next - (x[index] ?? 0) ** 2) ** 2 + ((x[index] ?? 0) - 1) ** 2),
      ),
  },
  {
    name: 'branin',
    bounds: [
      [-5, 10],
      [0, 15],
    ],
    optimum: 0.397887357729738,
    at: ([a = 0, b = 0]) =>
      (b - (5.1 * a ** 2) / (4 * Math.PI ** 2) + (5 * a) / Math.PI - 6) ** 2 +
      10 * (1 - 1 / (8 * Math.PI)) * Math.cos(a) +
      10,
  },
  {
    name: 'six-hump-camel',
    bounds: [
      [-3, 3],
      [-2, 2],
    ],
    optimum: -1.0316284534898774,
    at: ([a = 0, b = 0]) => (4 - 2.1 * a ** 2 + a ** 4 / 3) * a ** 2 + a * b + (-4 + 4 * b ** 2) * b ** 2,
  },
  {
    name: 'hartmann-3',
    bounds: cube(3, 0, 1),
    optimum: -3.86278214782076,
    at: hartmann(
      [
        [3, 10, 30],
        [0.1, 10, 35],
        [3, 10, 30],
        [0.1, 10, 35],
      ],
      [
        [0.3689, 0.117, 0.2673],
        [0.4699, 0.4387, 0.747],
        [0.1091, 0.8732, 0.5547],
        [0.0381, 0.5743, 0.8828],
      ],
    ),
  },
  {
    name: 'hartmann-6',
    bounds: cube(6, 0, 1),
    optimum: -3.32236801141551,
    at: hartmann(
      [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
      ],
      [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.665],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
      ],
    ),
  },
  {
    name: 'ackley-5',
    bounds: cube(5, -32.768, 32.768),
    optimum: 0,
    at: (x) =>
      -20 * Math.exp(-0.2 * Math.sqrt(sum(x.map((value) => value ** 2)) / x.length)) -
      Math.exp(sum(x.map((value) => Math.cos(2 * Math.PI * value))) / x.length) +
      20 +
      Math.E,
  },
  {
    name: 'rastrigin-4',
    bounds: cube(4, -5.12, 5.12),
    optimum: 0,
    at: (x) => 10 * x.length + sum(x.map((value) => value ** 2 - 10 * Math.cos(2 * Math.PI * value))),
  },
  {
    name: 'levy-4',
    bounds: cube(4, -10, 10),
    optimum: 0,
    at: (x) => {
      const w = x.map((value) => 1 + (value - 1) / 4);
      const first = w[0] ?? 0;
      const last = w.at(-1) ?? 0;
      return (
        Math.sin(Math.PI * first) ** 2 +
        sum(w.slice(0, -1).map((value) => (value - 1) ** 2 * (1 + 10 * Math.sin(Math.PI * value + 1) ** 2))) +
        (last - 1) ** 2 * (1 + Math.sin(2 * Math.PI * last) ** 2)
      );
    },
  },
  {
    name: 'styblinski-tang-5',
    bounds: cube(5, -5, 5),
    optimum: -195.8308285188588,
    at: (x) => sum(x.map((value) => value ** 4 - 16 * value ** 2 + 5 * value)) / 2,
  },
];

/** The search space of a function: parameters `x0`, `x1` and so on. */
export function spaceOf({ bounds }: Pick<StandardFunction, 'bounds'>): SearchSpace {
  const parameters = bounds.map(
    ([min, max], index) =>
      ({ name: `x${index}`, type: 'float', min, max, log: false, step: null, when: {} }) as const,
  );
  return { parameters, allows: null };
}
