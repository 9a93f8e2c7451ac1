/** The page with all plots of a sweep: one file that loads nothing from elsewhere. Pure. */
import type { SweepView } from '@muster/common/sweeps';
import { type PlotName, plotNames } from './names.ts';
import { plotOf, type SweepPlotData } from './plots.ts';
import { element, escaped, svgOf } from './svg.ts';

/** One plot as a file of its own. */
export function plotSvg(name: PlotName, data: SweepPlotData): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${svgOf(plotOf(name, data), true).text}\n`;
}

const style =
  'body{font-family:system-ui,sans-serif;color:#333a44;margin:24px auto;max-width:976px}svg{display:block;max-width:100%;height:auto;margin:16px 0}';
/** Even a name that slipped through would run nothing. */
const policy = "default-src 'none'; style-src 'unsafe-inline'";

export function plotPage(sweep: Pick<SweepView, 'id' | 'name' | 'state'>, data: SweepPlotData): string {
  const { id, name, state } = sweep;
  const complete = data.trials.filter((trial) => trial.state === 'complete').length;
  const summary = `${id}, ${state}: ${data.trials.length} trials, ${complete} of them complete; ${data.goal} ${data.metric}`;
  const figures = plotNames.map((plot) => svgOf(plotOf(plot, data), false));
  const body = element('body', {}, [element('h1', {}, [name]), element('p', {}, [summary]), ...figures]);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<title>${escaped(`Sweep ${name}`)}</title>
<style>${style}</style>
</head>
${body.text}
</html>
`;
}
