// Original file: proto/muster/v1/muster.proto


export interface ListTelemetryRequest {
  'node'?: (string);
  '_node'?: "node";
}

export interface ListTelemetryRequest__Output {
  'node'?: (string);
  '_node'?: "node";
}
