const lengthMax = 500;

/** The first line that says something, without colours and control characters, cut to what a sentence can hold. */
export function oneLine(text: string): string {
  const line = plainText(text)
    .split('\n')
    .map((each) => each.trim())
    .find((each) => each !== '');
  return (line ?? '').slice(0, lengthMax);
}

/** Colours gone, carriage returns as line ends, every other control character as a space. */
function plainText(text: string): string {
  return text
    .replaceAll(ansi, '')
    .replaceAll('\r', '\n')
    .replaceAll(/[^\P{Cc}\n]/gu, ' ');
}

const ansi = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');
