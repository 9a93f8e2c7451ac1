// Original file: proto/muster/v1/muster.proto


export interface RotateSecretKeyRequest {
}

export interface RotateSecretKeyRequest__Output {
}
