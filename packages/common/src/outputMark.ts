/** Lines that Muster puts into the output of a task begin with this. */
export const outputMark = '[muster]';
