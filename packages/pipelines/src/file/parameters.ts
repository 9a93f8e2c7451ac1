/** The parameters of a pipeline file. */
import { isMapping } from '@muster/common/spec/path';
import type { FileReader } from '@muster/experiments/file/findings';
import { type PipelineParameter, type PipelineParameterType, parameterTypes } from '../model.ts';
import { typeWords, valueOfType } from '../parameters.ts';

const paramsMax = 100;
export const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
export const variableForm = 'letters, digits and "_", not starting with a digit';
/** Names that conditions use for something else. */
const reserved: readonly string[] = ['steps', 'item'];

export function readParams(reader: FileReader, value: unknown): readonly PipelineParameter[] {
  if (value === undefined) return [];
  if (!isMapping(value) || Object.keys(value).length > paramsMax) {
    reader.wrong(['params'], value, `a mapping of at most ${paramsMax} parameters, such as {epochs: 3}`);
    return [];
  }
  return Object.entries(value).flatMap(([name, each]) => {
    const path = ['params', name];
    if (!variableName.test(name) || reserved.includes(name)) {
      reader.contradiction(path, 'is not a valid name', `${variableForm}; not ${reserved.join(' or ')}`);
      return [];
    }
    if (!isMapping(each)) return inferred(reader, name, each);
    const file = reader.mapping(path, each, ['type', 'default'], 'a parameter');
    if (file?.['type'] === undefined) {
      reader.wrong([...path, 'type'], undefined, parameterTypes.join(', '));
      return [];
    }
    const type = reader.word([...path, 'type'], file['type'], parameterTypes, 'string');
    const preset = file['default'] === undefined ? null : valueOfType(type, file['default']);
    if (preset === null && file['default'] !== undefined)
      reader.wrong([...path, 'default'], file['default'], typeWords[type]);
    return [{ name, type, default: preset }];
  });
}

/** A default alone has a type. */
function inferred(reader: FileReader, name: string, value: unknown): readonly PipelineParameter[] {
  const type = typeOf(value);
  const preset = type === null ? null : valueOfType(type, value);
  if (type !== null && preset !== null) return [{ name, type, default: preset }];
  reader.wrong(['params', name], value, 'a default value, or a mapping such as {type: int, default: 3}');
  return [];
}

function typeOf(value: unknown): PipelineParameterType | null {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'int' : 'float';
  return Array.isArray(value) ? 'list' : null;
}
