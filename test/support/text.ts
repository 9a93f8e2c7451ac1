import { expect } from 'vitest';

/** Equal, without a failure that prints megabytes: it says where two texts begin to differ. */
export function expectSameText(seen: string, expected: string): void {
  if (seen === expected) return;
  let at = 0;
  while (at < expected.length && seen[at] === expected[at]) at += 1;
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60));
  expect.fail(
    `${seen.length} of ${expected.length} characters; differs at ${at}: ${around(seen)}, not ${around(expected)}`,
  );
}
