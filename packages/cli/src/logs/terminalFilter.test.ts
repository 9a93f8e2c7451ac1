import { expect, test } from 'vitest';
import { createTerminalFilter, harmlessLine } from './terminalFilter.ts';

const escape = '\u001b';

function filtered(...pieces: readonly (string | Buffer)[]): string {
  const filter = createTerminalFilter();
  return pieces.map((piece) => filter.push(Buffer.from(piece))).join('') + filter.finish();
}

test.each([
  ['the clipboard (OSC 52)', `${escape}]52;c;cm0gLXJmIH4=\u0007`],
  ['the title (OSC 0)', `${escape}]0;owned${escape}\\`],
  ['a link (OSC 8)', `${escape}]8;;https://example.org${escape}\\click${escape}]8;;${escape}\\`],
  ['erasing the screen', `${escape}[2J`],
  ['moving the cursor', `${escape}[10;10H${escape}[3A`],
  ['a question to the terminal', `${escape}[6n${escape}[c`],
  ['a device control string', `${escape}P$q"p${escape}\\`],
  ['a full reset', `${escape}c`],
  ['the alternate screen', `${escape}[?1049h`],
  ['a control sequence of one character (C1)', '\u009b2J\u009d52;c;eA==\u009c'],
  ['bell and other controls', '\u0007\u000e\u007f\u0000'],
  ['a change of direction', '\u202egnp.exe'],
])('%s does not reach the terminal', (_what, text) => {
  const shown = filtered(text);
  // Nothing but printable characters.
  expect(shown).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  expect(shown).toMatch(/\\u[0-9a-f]{4}/);
  expect(harmlessLine(Buffer.from(text)).toString()).toBe(shown);
});

test('colours pass, and are switched off at the end', () => {
  const coloured = `${escape}[1;31mloss${escape}[38:2::255:0:0mred${escape}[m`;
  expect(filtered(coloured)).toBe(`${coloured}${escape}[0m`);
});

test('progress bars draw in their own line', () => {
  const bar = `\r 10%|#   |${escape}[K\r 20%|##  |\b\b\n\tdone\n`;
  expect(filtered(bar)).toBe(`${bar}${escape}[0m`);
  expect(filtered('\r 10%\r 20%\n')).toBe('\r 10%\r 20%\n');
});

test('a line after a prefix neither overwrites it nor leaves anything switched on', () => {
  const line = (text: string) => harmlessLine(Buffer.from(text)).toString();
  expect(line(`\b\b\b\b[1] \rspoof`)).toBe('[1] spoof');
  expect(line(`${escape}[8mhidden`)).toBe(`${escape}[8mhidden${escape}[0m`);
  expect(line('10%|#   |\b\b\b')).toBe('10%|#   |');
});

test('it does not matter where pieces of output end', () => {
  const text = `naïve 训练 ${escape}[31mred${escape}[0m ${escape}]52;c;eA==\u0007 ${escape}[2J end${escape}`;
  const bytes = Buffer.from(text);
  const whole = filtered(bytes);
  expect(whole).toContain('naïve 训练');
  for (let cut = 1; cut < bytes.length; cut += 1) {
    expect(filtered(bytes.subarray(0, cut), bytes.subarray(cut))).toBe(whole);
  }
  expect(filtered(...Array.from(bytes, (byte) => Buffer.from([byte])))).toBe(whole);
});

test('bytes that are no text are shown as such', () => {
  expect(filtered(Buffer.from([0x9b, 0x32, 0x4a, 0xff]))).toBe('\ufffd2J\ufffd');
});

test('a sequence that never ends is not waited for', () => {
  const endless = `${escape}[${'1;'.repeat(1_000)}`;
  const filter = createTerminalFilter();
  expect(filter.push(Buffer.from(endless)).length).toBeGreaterThan(1_900);
});
