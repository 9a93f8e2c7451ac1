/**
 * The nodes of a gang as files that MPI launchers read. Two, because they disagree: OpenMPI, PRRTE and DeepSpeed read
 * `address slots=N`; Hydra, which MPICH and Intel MPI start with, reads `address:N`.
 */
import { join } from 'node:path';
import type { VolumeMount } from '../drivers/driver.ts';

export interface HostfilePaths {
  readonly slots: string;
  readonly machines: string;
}

export interface Hostfiles {
  /** On the node. */
  readonly written: HostfilePaths;
  /** As the task sees them. */
  readonly seen: HostfilePaths;
  /** Shows them to a container. */
  readonly volume: VolumeMount;
}

const folderInContainer = '/.muster/hosts';

/** @param directory the task's own */
export function hostfilesOf(directory: string, inContainer: boolean): Hostfiles {
  const folder = join(directory, 'hosts');
  const written = pathsIn(folder);
  return {
    written,
    seen: inContainer ? pathsIn(folderInContainer) : written,
    volume: { source: folder, target: folderInContainer, readOnly: true },
  };
}

/** @param slots processes that each node takes */
export function hostfileTexts(
  addresses: readonly string[],
  slots: number,
): { readonly slots: string; readonly machines: string } {
  const lines = (format: (address: string) => string) =>
    addresses.map((address) => `${format(address)}\n`).join('');
  return {
    slots: lines((address) => `${address} slots=${slots}`),
    machines: lines((address) => `${address.includes(':') ? `[${address}]` : address}:${slots}`),
  };
}

/** So that `mpirun` finds them without a flag, whichever it is. */
export function hostfileEnvironment(paths: HostfilePaths): Readonly<Record<string, string>> {
  return {
    MUSTER_HOSTFILE: paths.slots,
    OMPI_MCA_orte_default_hostfile: paths.slots,
    PRTE_MCA_prte_default_hostfile: paths.slots,
    HYDRA_HOST_FILE: paths.machines,
    I_MPI_HYDRA_HOST_FILE: paths.machines,
  };
}

function pathsIn(folder: string): HostfilePaths {
  return { slots: join(folder, 'hostfile'), machines: join(folder, 'machinefile') };
}
