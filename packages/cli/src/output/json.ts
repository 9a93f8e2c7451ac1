import type { Output } from '../io.ts';

/** What JSON leaves as it is and a terminal acts on: DEL, the control characters of C1 (U+009B begins a sequence), direction. */
const acting = /[\u007f-\u009f\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * The value as JSON that is safe to print: in it every control and direction character is an escape of JSON, so that
 * anyone who reads it as JSON gets the text to the character, and anyone who reads it on a terminal gets no control sequence.
 * @param indent spaces for each level; 0: one line
 */
export function jsonText(value: unknown, indent = 0): string {
  // Outside its strings JSON is ASCII, so whatever is found is inside of one.
  return JSON.stringify(value, null, indent).replaceAll(
    acting,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The value as JSON: readable on a terminal, one line for programs. */
export function writeJson(output: Output, value: unknown): Promise<void> {
  return output.write(`${jsonText(value, output.isTerminal ? 2 : 0)}\n`);
}
