/**
 * The types of messages by reflection over the generated JSON descriptor, for those that look at a type: the mapping of fields, and
 * the bounds of what a peer may send.
 *
 * proto-loader would build the same from .proto files, but it also builds descriptors for reflection over gRPC, which only the
 * coordinator serves.
 */
import protobuf from 'protobufjs/light.js';
import { descriptorJson } from '../gen/descriptor.ts';

/** As the options of scripts/generate-proto.mjs say, which the generated types follow. */
const conversion: protobuf.IConversionOptions = {
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
};

/** The package of proto/, as far as the descriptor tells it. */
interface PackageJson {
  readonly [name: string]: MessageJson | protobuf.IEnum | protobuf.IService;
}
interface MessageJson extends protobuf.IType {
  readonly nested?: Record<string, protobuf.AnyNestedObject>;
}

export const packageName = 'muster.v1';
export const described = (
  JSON.parse(descriptorJson) as { nested: { muster: { nested: { v1: { nested: PackageJson } } } } }
).nested.muster.nested.v1.nested;

/** Holds a type once it has been asked for: a process needs some of 180, and a test few of them. */
const root = new protobuf.Root();
const types = root.define(packageName);
const asked = new Map<string, protobuf.Type>();

/** Adds a type, and those of its fields, unless they are there. */
function describe(name: string): void {
  const description = described[name];
  if (description === undefined || types.get(name) !== null) return;
  types.addJSON({ [name]: description });
  if (!('fields' in description)) return;
  Object.assign(types.lookupType(name), madeWhenNeeded);
  fieldTypes(description).forEach(describe);
}

type Made = 'encode' | 'decode' | 'fromObject' | 'toObject';

/**
 * The functions of a type. By itself protobufjs generates all of them, and one that is not called, at the first call of any;
 * of the types of a call half are needed, and generating them is a good part of it.
 */
const madeWhenNeeded = {
  encode: made('encode', (type) => protobuf.encoder(type)),
  decode: made('decode', (type) => protobuf.decoder(type)),
  fromObject: made('fromObject', (type) => protobuf.converter.fromObject(type)),
  toObject: made('toObject', (type) => protobuf.converter.toObject(type)),
};

function made(name: Made, generate: (type: protobuf.Type) => protobuf.Codegen) {
  return function first(this: protobuf.Type, ...given: unknown[]): unknown {
    const ofFields = this.fieldsArray.map((field) => field.resolve().resolvedType);
    const { Reader, Writer, util } = protobuf;
    const generated = generate(this)({ Reader, Writer, types: ofFields, util }) as (
      ...all: unknown[]
    ) => unknown;
    Object.assign(this, { [name]: generated });
    return generated.apply(this, given);
  };
}

function fieldTypes({ fields, nested }: MessageJson): readonly string[] {
  const below = Object.values(nested ?? {}).flatMap((each) => ('fields' in each ? fieldTypes(each) : []));
  return [...Object.values(fields).map(({ type }) => type), ...below];
}

/** For readers that look at the bytes of a message before they decode it. */
export type MessageType = protobuf.Type;
export type WireReader = protobuf.Reader;
export const WireReader = protobuf.Reader;

/** @param name without its package */
export function messageType(name: string): MessageType {
  let type = asked.get(name);
  if (type === undefined) {
    describe(name);
    root.resolveAll();
    type = types.lookupType(name);
    asked.set(name, type);
  }
  return type;
}

/** As handlers get it. */
export function messageToObject(type: MessageType, message: protobuf.Message): Record<string, unknown> {
  return type.toObject(message, conversion);
}
