/** The graph of a lineage for Graphviz, as SVG, and as a page. Pure. */
import type { LineageStepView, LineageView } from '@muster/common/pipelines';
import { htmlPage } from '../output/page.ts';
import { colours, element, label, type Markup, svgOf } from '../output/svg.ts';
import { count } from '../output/text.ts';
import type { LineageDrawing } from './lineageDrawings.ts';
import { type DrawnLineage, drawnLineage, type LineageEdge, type LineageNode } from './lineageGraph.ts';

export function lineageDrawing(lineage: LineageView, form: LineageDrawing): string {
  const drawn = drawnLineage(lineage);
  if (form === 'dot') return dotOf(lineage, drawn);
  const figure = figureOf(lineage, drawn);
  if (form === 'svg') return `<?xml version="1.0" encoding="UTF-8"?>\n${svgOf(figure, true).text}\n`;
  const note = leftOutText(drawn);
  return htmlPage(`Lineage of ${lineage.subject}`, [
    element('h1', {}, ['Lineage']),
    element('p', {}, [`${lineage.subject}. Arrows point from what was made to what has used it.`]),
    ...(note === '' ? [] : [element('p', {}, [note])]),
    svgOf(figure, false),
  ]);
}

/** For people. Empty: all is drawn. */
function leftOutText({ stepsLeftOut, edgesLeftOut }: DrawnLineage): string {
  const parts = [
    ...(stepsLeftOut === 0 ? [] : [`${count(stepsLeftOut, 'step')} far from it`]),
    ...(edgesLeftOut === 0 ? [] : [count(edgesLeftOut, 'arrow')]),
  ];
  return parts.length === 0 ? '' : `Not drawn: ${parts.join(', ')}. With -o json all steps are printed.`;
}

function nameOf({ steps: [first, ...rest] }: LineageNode): string {
  if (rest.length > 0) return `${first.step} (${rest.length + 1} items)`;
  return first.item === null ? first.step : `${first.step}[${first.item}]`;
}

function statesOf({ steps }: LineageNode): string {
  const counts = Map.groupBy(steps, ({ state }) => state);
  if (counts.size === 1) return steps[0].state;
  return [...counts].map(([state, { length }]) => `${length} ${state}`).join(', ');
}

function namesText({ names }: LineageEdge): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')}, …`;
}

/** What a step was, shown under the pointer. */
function detailsOf({ steps: [first, ...rest] }: LineageNode): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const artifacts = (each: LineageStepView['outputs']) => each.map(({ name, digest }) => `${name} ${digest}`);
  return [
    `run ${first.run} (${first.pipeline})`,
    ...(first.jobId === null || rest.length > 0 ? [] : [`job ${first.jobId}`]),
    ...(first.nodes.length === 0 || rest.length > 0 ? [] : [`nodes ${first.nodes.join(', ')}`]),
    ...(first.code === null ? [] : [`code ${first.code}`]),
    ...Object.entries(first.params).map(([name, value]) => `${name}=${text(value)}`),
    ...(rest.length > 0 ? [] : artifacts(first.outputs)),
  ]
    .slice(0, 40)
    .join('; ');
}

function dotOf({ subject }: LineageView, drawn: DrawnLineage): string {
  const nodes = drawn.nodes.map((node, place) => {
    const shown = dotText([nameOf(node), node.steps[0].run, statesOf(node)]);
    const own = node.isSubject ? ', penwidth=2, color="#d1495b"' : '';
    return `  n${place} [label=${shown}, tooltip=${dotText([detailsOf(node)])}${own}];`;
  });
  const edges = drawn.edges.map(
    (edge) => `  n${edge.from} -> n${edge.to} [label=${dotText([namesText(edge)])}];`,
  );
  const note = leftOutText(drawn);
  const lines = [
    'digraph lineage {',
    `  label=${dotText([`Lineage of ${subject}`, ...(note === '' ? [] : [note])])};`,
    '  node [shape=box, fontname="sans-serif"];',
    '  edge [fontname="sans-serif", fontsize=10];',
    ...nodes,
    ...edges,
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

/** Graphviz reads escapes such as `\\n` and entities such as `&lt;` in texts in quotes. */
function dotText(lines: readonly string[]): string {
  const escaped = lines.map((line) =>
    line
      .toWellFormed()
      .replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ')
      .replaceAll('&', '&amp;')
      .replaceAll('\\', '\\\\')
      .replaceAll('"', '\\"'),
  );
  return `"${escaped.join('\\n')}"`;
}

const box = { width: 164, height: 56, gapX: 20, gapY: 34 };
/** More of one layer are drawn in several rows. */
const rowMax = 6;
const margin = { x: 16, top: 40, bottom: 16 };
const stateColours: Readonly<Record<LineageStepView['state'], string>> = {
  waiting: colours.faint,
  running: colours.line,
  succeeded: '#4f9d69',
  cached: '#4f9d69',
  failed: colours.best,
  skipped: colours.faint,
  blocked: colours.faint,
  stopped: '#e0a030',
};

function figureOf({ subject }: LineageView, drawn: DrawnLineage) {
  const places = placesOf(drawn);
  const rows = Math.max(1, ...places.map(({ row }) => row + 1));
  const columns = Math.max(3, ...places.map(({ column }) => column + 1));
  const width = 2 * margin.x + columns * (box.width + box.gapX) - box.gapX;
  const height = margin.top + margin.bottom + rows * (box.height + box.gapY) - box.gapY;
  const left = (place: number) => margin.x + (places[place]?.column ?? 0) * (box.width + box.gapX);
  const top = (place: number) => margin.top + (places[place]?.row ?? 0) * (box.height + box.gapY);
  const arrows = drawn.edges.map((edge) => {
    const [x1, y1] = [left(edge.from) + box.width / 2, top(edge.from) + box.height];
    const [x2, y2] = [left(edge.to) + box.width / 2, top(edge.to)];
    const middle = (y1 + y2) / 2;
    const path = `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2 - 5}`;
    return element('g', {}, [
      element('path', { d: path, fill: 'none', stroke: colours.faint, 'stroke-width': 1.2 }, [
        element('title', {}, [namesText(edge)]),
      ]),
      element('path', { d: `M${x2 - 4} ${y2 - 7} L${x2} ${y2} L${x2 + 4} ${y2 - 7} Z`, fill: colours.faint }),
    ]);
  });
  const boxes = drawn.nodes.map((node, place) => boxOf(node, left(place), top(place)));
  // Where names are cut to the room that there is, the page has them in full under the pointer.
  const title = `Lineage of ${subject.length <= 60 ? subject : `…${subject.slice(-59)}`}`;
  return { title, width, height, parts: [...arrows, ...boxes] };
}

function boxOf(node: LineageNode, x: number, y: number): Markup {
  const [first] = node.steps;
  const worst = node.steps.find(({ state }) => state === 'failed')?.state ?? first.state;
  const edge = node.isSubject ? colours.best : colours.grid;
  return element('g', {}, [
    element('title', {}, [`${nameOf(node)}; ${detailsOf(node)}`]),
    element('rect', {
      x,
      y,
      width: box.width,
      height: box.height,
      rx: 5,
      fill: '#f7f8fa',
      stroke: edge,
      'stroke-width': node.isSubject ? 2 : 1,
    }),
    element('rect', { x, y, width: 5, height: box.height, fill: stateColours[worst] }),
    label(x + 13, y + 17, nameOf(node), { 'font-weight': 600 }, 20),
    label(x + 13, y + 33, first.run, { 'font-size': 11 }, 24),
    label(x + 13, y + 48, statesOf(node), { 'font-size': 11 }, 24),
  ]);
}

/** Within a layer, what uses the same stands side by side. */
function placesOf({
  nodes,
  edges,
}: DrawnLineage): readonly { readonly row: number; readonly column: number }[] {
  const sources = nodes.map((): number[] => []);
  for (const { from, to } of edges) sources[to]?.push(from);
  const places = nodes.map(() => ({ row: 0, column: 0 }));
  const layers = Map.groupBy(nodes.keys(), (place) => nodes[place]?.layer ?? 0);
  let top = 0;
  for (const layer of [...layers.keys()].toSorted((a, b) => a - b)) {
    const middle = (place: number) => {
      const all = sources[place] ?? [];
      return all.reduce((sum, each) => sum + (places[each]?.column ?? 0), 0) / Math.max(all.length, 1);
    };
    const ordered = (layers.get(layer) ?? []).toSorted((a, b) => middle(a) - middle(b) || a - b);
    for (const [index, place] of ordered.entries())
      places[place] = { row: top + Math.floor(index / rowMax), column: index % rowMax };
    top += Math.ceil(ordered.length / rowMax);
  }
  return places;
}
