// Original file: proto/muster/v1/types.proto

export const TaskState = {
  TASK_STATE_UNSPECIFIED: 'TASK_STATE_UNSPECIFIED',
  TASK_STATE_ASSIGNED: 'TASK_STATE_ASSIGNED',
  TASK_STATE_PREPARED: 'TASK_STATE_PREPARED',
  TASK_STATE_RUNNING: 'TASK_STATE_RUNNING',
  TASK_STATE_ENDED: 'TASK_STATE_ENDED',
  TASK_STATE_CHECKED: 'TASK_STATE_CHECKED',
} as const;

export type TaskState =
  | 'TASK_STATE_UNSPECIFIED'
  | 0
  | 'TASK_STATE_ASSIGNED'
  | 1
  | 'TASK_STATE_PREPARED'
  | 2
  | 'TASK_STATE_RUNNING'
  | 3
  | 'TASK_STATE_ENDED'
  | 4
  | 'TASK_STATE_CHECKED'
  | 5

export type TaskState__Output = typeof TaskState[keyof typeof TaskState]
