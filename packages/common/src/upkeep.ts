/** What has to be looked after before it runs out: certificates and disks of the coordinator. */

export const certificateKinds = ['ca', 'server', 'node'] as const;

export interface CertificateEnd {
  readonly kind: (typeof certificateKinds)[number];
  /** Name of whose it is. null: the coordinator's. */
  readonly node: string | null;
  /** Wall clock. */
  readonly expiresAtMs: number;
}

/** What is kept in the data directory. `events` are a part of the store, and estimated. */
export const diskParts = ['store', 'events', 'logs', 'rows', 'backups', 'reserve'] as const;

export interface DiskPart {
  readonly part: (typeof diskParts)[number];
  readonly usedBytes: number;
  /** What is removed when it is more. null: there is no limit. */
  readonly limitBytes: number | null;
}

export interface FileSystemSpace {
  /** A directory on it. */
  readonly path: string;
  readonly sizeBytes: number;
  /** For users other than root. */
  readonly availableBytes: number;
  /** Kept free on it: below it no jobs are taken. 0: nothing is. */
  readonly reserveBytes: number;
}

export interface DiskUse {
  readonly parts: readonly DiskPart[];
  readonly fileSystems: readonly FileSystemSpace[];
}

/** Of a coordinator, as it is now. */
export interface Upkeep {
  certificates(): readonly CertificateEnd[];
  diskUse(): Promise<DiskUse>;
}

export interface UpkeepView {
  readonly certificates: readonly CertificateEnd[];
  readonly parts: readonly DiskPart[];
  readonly fileSystems: readonly FileSystemSpace[];
}
