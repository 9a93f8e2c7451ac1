/**
 * What calls need of proto/: how messages are encoded, which fields they have, and the methods of services.
 *
 * Here they are made by reflection while a process runs. In the bundle of short commands `scripts/preparedMessages.mjs` puts functions
 * in the place of this file that were made from the same types by the same library when the bundle was built: reflection was a tenth
 * of the time of a whole `muster submit`.
 */
import type protobuf from 'protobufjs/light.js';
import { described, messageToObject, messageType, packageName } from './messageTypes.ts';

export interface MessageCodec {
  /** @throws {TypeError} for a value that is no such message */
  encode(value: object): Buffer;
  /** @returns the message as handlers get it, with defaults. @throws {Error} for bytes that are no such message */
  decode(bytes: Uint8Array): object;
}

export interface MessageField {
  readonly name: string;
  readonly isList: boolean;
  readonly isMap: boolean;
  /** The field may be absent; a list is empty instead. */
  readonly isOptional: boolean;
  /** What the field is where it is not optional and not on the wire. */
  readonly defaultValue: unknown;
  /** The name of the message that it holds, unless it holds a scalar, a word or a map. */
  readonly message: string | null;
}

export interface Method {
  readonly name: string;
  /** The path of a call, with package and service. */
  readonly path: string;
  readonly requestType: string;
  readonly responseType: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

/** @param name of a message, without its package */
export function messageCodec(name: string): MessageCodec {
  return {
    encode(value) {
      const type = messageType(name);
      return Buffer.from(type.encode(type.fromObject(value)).finish());
    },
    decode(bytes) {
      const type = messageType(name);
      return messageToObject(type, type.decode(bytes));
    },
  };
}

/** @param ofMessage its name, without its package */
export function wireFields(ofMessage: string): readonly MessageField[] {
  return messageType(ofMessage).fieldsArray.map((field) => {
    const { name, map: isMap, repeated: isList, options, resolvedType, defaultValue } = field.resolve();
    const isMessage = resolvedType !== null && 'fieldsArray' in resolvedType && !isMap;
    const isOptional = !isList && (isMessage || options?.['proto3_optional'] === true);
    return { name, isList, isMap, isOptional, defaultValue, message: isMessage ? resolvedType.name : null };
  });
}

/** @param name of a service, without its package */
export function serviceMethods(name: string): readonly Method[] {
  const { methods } = described[name] as protobuf.IService;
  return Object.entries(methods).map(
    ([method, { requestType, responseType, requestStream = false, responseStream = false }]) => ({
      name: method,
      path: `/${packageName}.${name}/${method}`,
      requestType,
      responseType,
      requestStream,
      responseStream,
    }),
  );
}
