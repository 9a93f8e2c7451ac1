// Original file: proto/muster/v1/muster.proto

import type { Project as _muster_v1_Project, Project__Output as _muster_v1_Project__Output } from '../../muster/v1/Project.ts';

export interface ListProjectsResponse {
  'projects'?: (_muster_v1_Project)[];
}

export interface ListProjectsResponse__Output {
  'projects': (_muster_v1_Project__Output)[];
}
