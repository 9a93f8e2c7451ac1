// Original file: proto/muster/v1/muster.proto


export interface AcknowledgeAlertRequest {
  'name'?: (string);
  'subject'?: (string);
  '_subject'?: "subject";
}

export interface AcknowledgeAlertRequest__Output {
  'name': (string);
  'subject'?: (string);
  '_subject'?: "subject";
}
