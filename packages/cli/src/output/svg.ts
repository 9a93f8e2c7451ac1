/** SVG as text. Whatever stands in it is escaped here, and nowhere else. Pure. */

/** Markup that is escaped already. */
export interface Markup {
  readonly text: string;
}

type Attributes = Readonly<Record<string, string | number>>;

export function element(
  name: string,
  attributes: Attributes,
  children: readonly (Markup | string)[] = [],
): Markup {
  const given = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(valueText(value))}"`);
  const inside = children.map((child) => (typeof child === 'string' ? escaped(child) : child.text)).join('');
  return {
    text: inside === '' ? `<${name}${given.join('')}/>` : `<${name}${given.join('')}>${inside}</${name}>`,
  };
}

/** A hundredth of a pixel is never seen. */
function valueText(value: string | number): string {
  return typeof value === 'string' ? value : String(Math.round(value * 100) / 100);
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** For text and for attributes in quotes. What XML does not allow at all becomes a replacement character. */
export function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, '\uFFFD')
    .replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}

export const colours = {
  line: '#4e79a7',
  best: '#d1495b',
  faint: '#b9c0c9',
  grid: '#e3e6ea',
  text: '#333a44',
};

/** From good to bad, told apart in print and with defects of colour vision too. */
const gradient = [
  [68, 1, 84],
  [49, 104, 142],
  [53, 183, 121],
  [253, 231, 37],
] as const;

/** @param share from 0 (best) to 1 (worst) */
export function gradientColour(share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (gradient.length - 1);
  const index = Math.min(Math.floor(place), gradient.length - 2);
  const [from, to] = [gradient[index] ?? gradient[0], gradient[index + 1] ?? gradient[0]];
  const parts = from.map((part, at) => Math.round(part + (place - index) * ((to[at] ?? 0) - part)));
  return `rgb(${parts.join(',')})`;
}

export interface Figure {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly parts: readonly Markup[];
}

/** @param isDocument whether it is a file of its own */
export function svgOf({ title, width, height, parts }: Figure, isDocument: boolean): Markup {
  const size = { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img' };
  const font = { 'font-family': 'system-ui, sans-serif', 'font-size': 12, fill: colours.text };
  const space = isDocument ? { xmlns: 'http://www.w3.org/2000/svg' } : {};
  const ground = element('rect', { width, height, fill: '#ffffff' });
  const heading = element('text', { x: 16, y: 24, 'font-size': 15, 'font-weight': 600 }, [title]);
  return element('svg', { ...space, ...size, ...font }, [
    element('title', {}, [title]),
    ground,
    heading,
    ...parts,
  ]);
}

/** A text with a note that browsers show under the pointer. */
export function label(
  x: number,
  y: number,
  text: string,
  attributes: Attributes = {},
  lengthMax = 24,
): Markup {
  const short = text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
  const children = short === text ? [text] : [short, element('title', {}, [text])];
  return element('text', { x, y, ...attributes }, children);
}
