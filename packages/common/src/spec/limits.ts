/** Bounds on what a job spec may cost us before it is understood. */

/** UTF-8 bytes. Checked before anything is parsed. */
export const specBytesMax = 256 * 1024;

/** Nested mappings and lists, the outermost counted as 1. YAML's composer is recursive and would exhaust the stack. */
export const specDepthMax = 32;

/** A spec with more problems reports the first ones, and that there are others. */
export const specProblemsMax = 100;

/**
 * UTF-8 bytes of one argument or one environment value. Linux refuses to start a program with a single string over
 * 131,072 bytes; an environment string also holds its name, hence the distance.
 */
export const argumentBytesMax = 130_000;
