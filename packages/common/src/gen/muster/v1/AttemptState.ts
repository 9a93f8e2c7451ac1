// Original file: proto/muster/v1/types.proto

export const AttemptState = {
  ATTEMPT_STATE_UNSPECIFIED: 'ATTEMPT_STATE_UNSPECIFIED',
  ATTEMPT_STATE_ALLOCATED: 'ATTEMPT_STATE_ALLOCATED',
  ATTEMPT_STATE_CLAIMED: 'ATTEMPT_STATE_CLAIMED',
  ATTEMPT_STATE_RUNNING: 'ATTEMPT_STATE_RUNNING',
  ATTEMPT_STATE_ENDED: 'ATTEMPT_STATE_ENDED',
} as const;

export type AttemptState =
  | 'ATTEMPT_STATE_UNSPECIFIED'
  | 0
  | 'ATTEMPT_STATE_ALLOCATED'
  | 1
  | 'ATTEMPT_STATE_CLAIMED'
  | 2
  | 'ATTEMPT_STATE_RUNNING'
  | 3
  | 'ATTEMPT_STATE_ENDED'
  | 4

export type AttemptState__Output = typeof AttemptState[keyof typeof AttemptState]
