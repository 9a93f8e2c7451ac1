/** Holds events that tests see to the schema of their kind. */
import { type EventKind } from '@muster/common/eventKinds';
import { dataMembersOf, kindsOfEvents, schemaOfEvents } from '@muster/common/eventSchema';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

interface EventSchema {
  readonly $defs: Readonly<Record<EventKind, object>>;
}

const document = schemaOfEvents() as EventSchema;
// That the schema is one by itself, has a test of its own. Members of one type or null are two types to the strict mode.
const ajv = new Ajv2020({ allowUnionTypes: true, validateSchema: false });
const validators = new Map<EventKind | 'event', ValidateFunction>();

/** Compiled when it is first asked for: most files of tests see a few kinds. */
function validatorOf(name: EventKind | 'event'): ValidateFunction {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const made = ajv.compile(name === 'event' ? document : document.$defs[name]);
  validators.set(name, made);
  return made;
}

/**
 * What is wrong with the data of an event as it is stored: another shape than the table of kinds says, or a member that the table does
 * not have. null: nothing.
 */
export function problemOfEvent({
  kind,
  data,
}: {
  readonly kind: EventKind;
  readonly data: object;
}): string | null {
  if (!kindsOfEvents.includes(kind)) return `${kind} is not in the table of kinds`;
  const sent = JSON.parse(JSON.stringify(data)) as object;
  const validate = validatorOf(kind);
  const known = new Set(Object.keys(dataMembersOf(kind)).map((name) => name.replace('?', '')));
  const unknown = Object.keys(sent).filter((name) => !known.has(name));
  if (unknown.length > 0)
    return `${kind} has ${unknown.join(', ')}, which its row in the table of kinds does not have`;
  if (validate(sent)) return null;
  return `${kind}: ${problemsOf(validate)} in ${JSON.stringify(sent)}`;
}

/** @param event as the API and NATS show it. @returns null: nothing is wrong */
export function problemOfCloudEvent(event: object): string | null {
  const validate = validatorOf('event');
  if (validate(event)) return null;
  return `${problemsOf(validate)} in ${JSON.stringify(event)}`;
}

function problemsOf({ errors }: ValidateFunction): string {
  return (errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('; ');
}
