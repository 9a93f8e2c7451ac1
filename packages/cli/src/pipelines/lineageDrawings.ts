/** In what forms the graph of a lineage is drawn. The command checks its flag before it loads what draws. */
export const lineageDrawings = ['dot', 'svg', 'html'] as const;
export type LineageDrawing = (typeof lineageDrawings)[number];
