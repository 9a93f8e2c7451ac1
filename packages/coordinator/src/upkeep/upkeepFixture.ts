import type { Upkeep } from '@muster/common/upkeep';

/** Of a coordinator without TLS and without a disk. */
export const noUpkeep: Upkeep = {
  certificates: () => [],
  diskUse: () => Promise.resolve({ parts: [], fileSystems: [] }),
};
