/** Texts of any characters, for tests of properties. */
import * as fc from 'fast-check';

const codePoint = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }));

/**
 * Of all that Unicode has but halves of surrogate pairs, and of the ASCII texts on which careless code fails, such as `__proto__`.
 * `fc.string({ unit: 'binary' })` has the same, but lists all characters first: a second of CPU and 130 MB.
 * @param lengthMin in code points
 * @param lengthMax in code points
 */
export function anyText(lengthMin: number, lengthMax: number): fc.Arbitrary<string> {
  const lengths = { minLength: lengthMin, maxLength: lengthMax };
  const ofCodePoints = fc.array(codePoint, lengths).map((points) => String.fromCodePoint(...points));
  return fc.oneof({ weight: 3, arbitrary: ofCodePoints }, { weight: 1, arbitrary: fc.string(lengths) });
}
