import { build } from '../../scripts/build.mjs';

/** End-to-end tests start dist/muster.mjs; vitest calls this before the first of them, so they never test an old build. */
export async function setup(): Promise<void> {
  await build();
}
