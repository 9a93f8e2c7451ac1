// Original file: proto/muster/v1/muster.proto


export interface RotateAdminTokenRequest {
}

export interface RotateAdminTokenRequest__Output {
}
