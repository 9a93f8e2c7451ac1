// Original file: proto/muster/v1/muster.proto

import type { AlertScope as _muster_v1_AlertScope, AlertScope__Output as _muster_v1_AlertScope__Output } from '../../muster/v1/AlertScope.ts';
import type { AlertSilence as _muster_v1_AlertSilence, AlertSilence__Output as _muster_v1_AlertSilence__Output } from '../../muster/v1/AlertSilence.ts';
import type { AlertEpisode as _muster_v1_AlertEpisode, AlertEpisode__Output as _muster_v1_AlertEpisode__Output } from '../../muster/v1/AlertEpisode.ts';
import type { Long } from '@grpc/proto-loader';

export interface Alert {
  'name'?: (string);
  'severity'?: (string);
  'condition'?: (string);
  'message'?: (string);
  'labels'?: ({[key: string]: string});
  'forMs'?: (number | string | Long);
  'repeatMs'?: (number | string | Long);
  'scope'?: (_muster_v1_AlertScope | null);
  'owner'?: (string);
  'builtIn'?: (boolean);
  'createdAtMs'?: (number | string | Long);
  'silence'?: (_muster_v1_AlertSilence | null);
  'firing'?: (_muster_v1_AlertEpisode)[];
  'pending'?: (number);
  '_repeatMs'?: "repeatMs";
  '_owner'?: "owner";
  '_createdAtMs'?: "createdAtMs";
}

export interface Alert__Output {
  'name': (string);
  'severity': (string);
  'condition': (string);
  'message': (string);
  'labels': ({[key: string]: string});
  'forMs': (number);
  'repeatMs'?: (number);
  'scope': (_muster_v1_AlertScope__Output | null);
  'owner'?: (string);
  'builtIn': (boolean);
  'createdAtMs'?: (number);
  'silence': (_muster_v1_AlertSilence__Output | null);
  'firing': (_muster_v1_AlertEpisode__Output)[];
  'pending': (number);
  '_repeatMs'?: "repeatMs";
  '_owner'?: "owner";
  '_createdAtMs'?: "createdAtMs";
}
