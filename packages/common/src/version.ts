/** Version of every Muster program of this tree; the packages are released together. */
export const musterVersion = '0.1.0';
