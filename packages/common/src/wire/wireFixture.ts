/** Messages through bytes, as on the wire. */

interface Answered<Message, Read> {
  responseSerialize(value: Message): Buffer;
  responseDeserialize(bytes: Buffer): Read;
}

interface Asked<Message, Read> {
  requestSerialize(value: Message): Buffer;
  requestDeserialize(bytes: Buffer): Read;
}

/** What a client reads of an answer. */
export function sent<Message, Read>(method: Answered<Message, Read>, value: Message): Read {
  return method.responseDeserialize(method.responseSerialize(value));
}

/** What a server reads of a request. */
export function asked<Message, Read>(method: Asked<Message, Read>, value: Message): Read {
  return method.requestDeserialize(method.requestSerialize(value));
}
