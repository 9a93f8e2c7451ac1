/** JSON Schema of values, each with an example, and what makes it. Plain data. */

/** A schema by JSON Schema 2020-12. */
export interface EventShape {
  readonly type: string | readonly [string, 'null'];
  /** A value that it allows. */
  readonly example: unknown;
  readonly enum?: readonly (string | null)[];
  readonly properties?: Readonly<Record<string, EventShape>>;
  readonly required?: readonly string[];
  readonly items?: EventShape;
  readonly additionalProperties?: EventShape;
}

/** By name; `?` marks a member that may be absent. */
export type Members = Readonly<Record<string, EventShape>>;

export const textShape = (example: string): EventShape => ({ type: 'string', example });
export const whole = (example: number): EventShape => ({ type: 'integer', example });
export const real = (example: number): EventShape => ({ type: 'number', example });
export const flag = (example: boolean): EventShape => ({ type: 'boolean', example });
export const oneOf = (values: readonly string[], example = values[0]): EventShape => ({
  type: 'string',
  example,
  enum: values,
});
export const listShape = (items: EventShape, example: unknown = [items.example]): EventShape => ({
  type: 'array',
  example,
  items,
});
/** Members whose names are not known beforehand. */
export const mapOf = (values: EventShape, example: object): EventShape => ({
  type: 'object',
  example,
  additionalProperties: values,
});

export function objectOf(members: Members, example?: object): EventShape {
  const named = Object.entries(members).map(([name, shape]) => [name.replace('?', ''), shape] as const);
  return {
    type: 'object',
    example: example ?? Object.fromEntries(named.map(([name, shape]) => [name, shape.example])),
    properties: Object.fromEntries(named),
    required: Object.keys(members).filter((name) => !name.endsWith('?')),
  };
}

/** @param example default: that of the shape; null: none */
export function nullable(shape: EventShape, example: unknown = shape.example): EventShape {
  const type = [String(shape.type), 'null'] as const;
  return { ...shape, type, example, ...(shape.enum === undefined ? {} : { enum: [...shape.enum, null] }) };
}
