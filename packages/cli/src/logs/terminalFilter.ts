/**
 * Output of a job on its way to a terminal. What a job prints must not set the clipboard or the title, ask the terminal
 * for answers, or erase what else is on the screen. Colours, and what progress bars do within their own line, pass; every
 * other control character is shown as an escape, such as `\u001b`.
 */
import { StringDecoder } from 'node:string_decoder';
import { printable } from '../output/text.ts';

/** Select Graphic Rendition and Erase in Line, of ECMA-48. No real sequence is longer. */
const parametersMax = 64;
const harmless = new RegExp(String.raw`\u001b\[(?:[0-9;:]{0,${parametersMax}}m|[012]?K)|[\n\r\t\b]`, 'g');
/** What may still become one of these with the next piece. */
const unfinished = new RegExp(String.raw`\u001b(?:\[[0-9;:]{0,${parametersMax}})?$`);
export const resetColours = '\u001b[0m';

export interface TerminalFilter {
  /** @returns what of the output may be written now */
  push(data: Uint8Array): string;
  /** @returns what is left when the output ends; colours that it left switched on are switched off */
  finish(): string;
}

export function createTerminalFilter(): TerminalFilter {
  const decoder = new StringDecoder('utf8');
  let held = '';
  let hasColours = false;

  function pass(text: string): string {
    const shown = harmlessText(text);
    // Whatever escape is left in it sets a colour or erases a line.
    hasColours ||= shown.includes('\u001b');
    return shown;
  }

  return {
    push(data) {
      const text = held + decoder.write(Buffer.from(data.buffer, data.byteOffset, data.length));
      const whole = text.slice(0, unfinished.exec(text)?.index ?? text.length);
      held = text.slice(whole.length);
      return pass(whole);
    },
    finish() {
      const rest = pass(held + decoder.end());
      held = '';
      return hasColours ? rest + resetColours : rest;
    },
  };
}

/**
 * A whole line, without anything that could act on the terminal beyond that line or on what stands before it. What it
 * switches on ends with it, for what follows may be a message of Muster's own.
 */
export function harmlessLine(line: Buffer): Buffer {
  const shown = harmlessText(line.toString('utf8').replaceAll(/[\b\r]/g, ''));
  return Buffer.from(shown.includes('\u001b') ? shown + resetColours : shown);
}

function harmlessText(text: string): string {
  let shown = '';
  let end = 0;
  for (const match of text.matchAll(harmless)) {
    shown += printable(text.slice(end, match.index)) + match[0];
    end = match.index + match[0].length;
  }
  return shown + printable(text.slice(end));
}
