/** The page with all plots of a sweep. Pure. */
import type { SweepView } from '@muster/common/sweeps';
import { htmlPage } from '../../output/page.ts';
import { element, svgOf } from '../../output/svg.ts';
import { type PlotName, plotNames } from './names.ts';
import { plotOf, type SweepPlotData } from './plots.ts';

/** One plot as a file of its own. */
export function plotSvg(name: PlotName, data: SweepPlotData): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${svgOf(plotOf(name, data), true).text}\n`;
}

export function plotPage(sweep: Pick<SweepView, 'id' | 'name' | 'state'>, data: SweepPlotData): string {
  const { id, name, state } = sweep;
  const complete = data.trials.filter((trial) => trial.state === 'complete').length;
  const summary = `${id}, ${state}: ${data.trials.length} trials, ${complete} of them complete; ${data.goal} ${data.metric}`;
  const figures = plotNames.map((plot) => svgOf(plotOf(plot, data), false));
  return htmlPage(`Sweep ${name}`, [element('h1', {}, [name]), element('p', {}, [summary]), ...figures]);
}
