/**
 * How Node runs an agent. What it allocates dies young and is little: with the usual 16 MiB for young objects it would fill
 * them all before anything is collected, and be 11 MiB larger for it. `packages/cli/bin/muster` sets the same.
 */
export const agentNodeOptions = '--max-semi-space-size=1';
