/** The agent's Prometheus page as a whole, rendered from what was read last: a scrape never waits for a driver. */
import type { HostSample } from '../host/hostMetrics.ts';
import { type AgentFigures, agentFamilies } from './agentPage.ts';
import { type GpuPageParts, gpuFamilies } from './gpuPage.ts';
import { hostFamilies } from './hostPage.ts';
import { renderFamilies } from './textFormat.ts';

export interface PageParts {
  readonly gpus: GpuPageParts;
  /** null: not read yet. */
  readonly host: HostSample | null;
  readonly agent: AgentFigures;
}

export const pageContentType = 'text/plain; version=0.0.4; charset=utf-8';

export function renderPage({ gpus, host, agent }: PageParts): string {
  return renderFamilies([
    ...gpuFamilies(gpus),
    ...(host === null ? [] : hostFamilies(host)),
    ...agentFamilies(agent, gpus.observation),
  ]);
}
