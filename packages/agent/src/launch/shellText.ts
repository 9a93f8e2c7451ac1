/** Puts a value into the text of a POSIX shell so that the shell reads exactly that value. */

/**
 * @param text of a script, in which the value is going to stand at `at`
 * @returns the value, quoted as that place needs it: there may be quotes around it already
 */
export function quotedAt(text: string, at: number, value: string): string {
  if (/^[\w./:=@%+,-]+$/.test(value)) return value;
  const quotes = quotesAt(text, at);
  if (quotes === 'double') return value.replace(/[\\"$`]/g, '\\$&');
  const within = value.replaceAll("'", String.raw`'\''`);
  return quotes === 'single' ? within : `'${within}'`;
}

/** Here-documents and substitutions within quotes are not told apart: they count as the quotes around them. */
function quotesAt(text: string, at: number): 'none' | 'single' | 'double' {
  let quotes: 'none' | 'single' | 'double' = 'none';
  for (let index = 0; index < at; index += 1) {
    const letter = text[index];
    if (letter === '\\' && quotes !== 'single') index += 1;
    else if (letter === "'" && quotes !== 'double') quotes = quotes === 'single' ? 'none' : 'single';
    else if (letter === '"' && quotes !== 'single') quotes = quotes === 'double' ? 'none' : 'double';
  }
  return quotes;
}
