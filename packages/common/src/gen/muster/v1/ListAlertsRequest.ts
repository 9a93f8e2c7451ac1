// Original file: proto/muster/v1/muster.proto


export interface ListAlertsRequest {
  'name'?: (string);
  'firing'?: (boolean);
  '_name'?: "name";
}

export interface ListAlertsRequest__Output {
  'name'?: (string);
  'firing': (boolean);
  '_name'?: "name";
}
