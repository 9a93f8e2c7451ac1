// Original file: proto/muster/v1/types.proto

export const NodeState = {
  NODE_STATE_UNSPECIFIED: 'NODE_STATE_UNSPECIFIED',
  NODE_STATE_ONLINE: 'NODE_STATE_ONLINE',
  NODE_STATE_SILENT: 'NODE_STATE_SILENT',
} as const;

export type NodeState =
  | 'NODE_STATE_UNSPECIFIED'
  | 0
  | 'NODE_STATE_ONLINE'
  | 1
  | 'NODE_STATE_SILENT'
  | 2

export type NodeState__Output = typeof NodeState[keyof typeof NodeState]
