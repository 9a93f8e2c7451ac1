import type { ProgramEnvironment } from '../environment.ts';
import type { Output } from '../io.ts';

/** SGR codes: the one that starts a style and the one that ends it. */
const styles = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof styles;
export type Colours = Readonly<Record<Style, (text: string) => string>> & { readonly enabled: boolean };

export function makeColours(enabled: boolean): Colours {
  const paint = (style: Style) => (text: string) => {
    const [start, end] = styles[style];
    return enabled && text !== '' ? `\x1b[${start}m${text}\x1b[${end}m` : text;
  };
  return {
    enabled,
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
    blue: paint('blue'),
    magenta: paint('magenta'),
    cyan: paint('cyan'),
  };
}

export function coloursFor(output: Output, environment: Pick<ProgramEnvironment, 'colour'>): Colours {
  return makeColours(environment.colour === 'auto' ? output.isTerminal : environment.colour === 'always');
}
