// Original file: proto/muster/v1/muster.proto


export interface ListTelemetryRequest {
  'node'?: (string);
}

export interface ListTelemetryRequest__Output {
  'node': (string);
}
