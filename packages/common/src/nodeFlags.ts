/**
 * Flags of every Node process that Muster starts. Without this one SIGUSR1 opens a debugger on 127.0.0.1:9229, which asks
 * nobody for a token and runs whatever code it is given: sending the signal takes the same user or root, connecting takes
 * any local user. `packages/cli/bin/muster` sets it for what people start.
 */
export const closedNodeFlags: readonly string[] = ['--disable-sigusr1'];
