// Original file: proto/muster/v1/muster.proto

import type { CertificateEnd as _muster_v1_CertificateEnd, CertificateEnd__Output as _muster_v1_CertificateEnd__Output } from '../../muster/v1/CertificateEnd.ts';
import type { DiskPart as _muster_v1_DiskPart, DiskPart__Output as _muster_v1_DiskPart__Output } from '../../muster/v1/DiskPart.ts';
import type { FileSystemSpace as _muster_v1_FileSystemSpace, FileSystemSpace__Output as _muster_v1_FileSystemSpace__Output } from '../../muster/v1/FileSystemSpace.ts';

export interface Upkeep {
  'certificates'?: (_muster_v1_CertificateEnd)[];
  'parts'?: (_muster_v1_DiskPart)[];
  'fileSystems'?: (_muster_v1_FileSystemSpace)[];
}

export interface Upkeep__Output {
  'certificates': (_muster_v1_CertificateEnd__Output)[];
  'parts': (_muster_v1_DiskPart__Output)[];
  'fileSystems': (_muster_v1_FileSystemSpace__Output)[];
}
