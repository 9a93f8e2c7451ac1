/** The plots that a sweep has. */
export const plotNames = ['parallel', 'curves', 'history', 'importance'] as const;
export type PlotName = (typeof plotNames)[number];
