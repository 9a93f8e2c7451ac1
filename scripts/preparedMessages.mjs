// Encodes and decodes the messages that commands exchange with the coordinator, as functions that are made when the bundle is built
// instead of while a command runs. They stand in for packages/common/src/wire/messages.ts in the bundle of short commands, and
// messages.test.ts compares both. protobufjs writes the functions; this file only gives them what they refer to.
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { root } from './setup.mjs';

const packageName = 'muster.v1';
const serviceName = 'Muster';
/** Travels as metadata of a refusal, so no method names it. */
const inMetadata = ['SpecProblems'];

/** Fits a module named as `protobufjs/minimal.js` is. @returns {string} an ES module with the exports of messages.ts */
export function preparedMessages() {
  const schema = new protobuf.Root();
  schema.resolvePath = (_origin, target) => join(root, 'proto', target);
  schema.loadSync('muster/v1/muster.proto', { keepCase: false }).resolveAll();
  const service = schema.lookupService(`${packageName}.${serviceName}`);
  const lookup = (/** @type {string} */ name) => schema.lookupType(`${packageName}.${name}`);

  const requests = withMembers(service.methodsArray.map(({ requestType }) => lookup(requestType)));
  const responses = withMembers([
    ...service.methodsArray.map(({ responseType }) => lookup(responseType)),
    ...inMetadata.map(lookup),
  ]);
  const makers = [...new Set([...requests, ...responses])].map((type) => {
    const functions = [
      `fields: ${JSON.stringify(type.fieldsArray.map(fieldOf))}`,
      ...(requests.has(type) ? [member(type, 'fromObject'), member(type, 'encode')] : []),
      ...(responses.has(type) ? [member(type, 'decode'), member(type, 'toObject')] : []),
    ];
    return `${type.name}: () => ({ ${functions.join(', ')} }),`;
  });
  return `import minimal from 'protobufjs/minimal.js';
const { Reader, Writer, util } = minimal;
const conversion = { longs: Number, enums: String, defaults: true, oneofs: true };
const makers = {
${makers.join('\n')}
};
const made = new Map();
function message(name) {
  let found = made.get(name);
  if (found === undefined) {
    found = { ...makers[name](), ctor: class {} };
    // Decoding looks there to see whether a map has an entry already.
    for (const { name: field, isMap } of found.fields) if (isMap) found.ctor.prototype[field] = util.emptyObject;
    made.set(name, found);
  }
  return found;
}
export function messageCodec(name) {
  return {
    encode: (value) => {
      const type = message(name);
      return Buffer.from(type.encode(type.fromObject(value)).finish());
    },
    decode: (bytes) => {
      const type = message(name);
      return type.toObject(type.decode(bytes), conversion);
    },
  };
}
export function wireFields(name) {
  return message(name).fields;
}
const methods = ${JSON.stringify(service.methodsArray.map(methodOf))};
export function serviceMethods(name) {
  return name === '${serviceName}' ? methods : [];
}
`;
}

/** The types, and those of their fields, and so on. @param {readonly protobuf.Type[]} types */
function withMembers(types) {
  const all = new Set(types);
  for (const type of all)
    for (const { resolvedType } of type.fieldsArray)
      if (resolvedType instanceof protobuf.Type) all.add(resolvedType);
  return all;
}

/**
 * A function of a type as a member of an object. The generated code refers to other types by their index. Here it refers to
 * messages by name, and contains the words of an enumeration itself.
 * @param {protobuf.Type} type
 * @param {'encode' | 'decode' | 'fromObject' | 'toObject'} name
 */
function member(type, name) {
  const { encoder, decoder, converter } = protobuf;
  const generated = {
    encode: encoder,
    decode: decoder,
    fromObject: converter.fromObject,
    toObject: converter.toObject,
  };
  const code = String(generated[name](type)).replaceAll(/\btypes\[(\d+)\]/g, (_, place) => {
    const { resolvedType } = type.fieldsArray[Number(place)] ?? {};
    if (resolvedType instanceof protobuf.Enum)
      return `{ values: ${JSON.stringify(resolvedType.valuesById)} }`;
    return `message('${resolvedType?.name}')`;
  });
  return `${name}: ${code}`;
}

/** @param {protobuf.Field} field */
function fieldOf(field) {
  const { name, map: isMap, repeated: isList, options, resolvedType, defaultValue } = field;
  const isMessage = resolvedType instanceof protobuf.Type && !isMap;
  const isOptional = !isList && (isMessage || options?.['proto3_optional'] === true);
  return { name, isList, isMap, isOptional, defaultValue, message: isMessage ? resolvedType.name : null };
}

/** @param {protobuf.Method} method */
function methodOf({ name, requestType, responseType, requestStream = false, responseStream = false }) {
  return {
    name,
    path: `/${packageName}.${serviceName}/${name}`,
    requestType,
    responseType,
    requestStream,
    responseStream,
  };
}
