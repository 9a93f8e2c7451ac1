/** Reads the arguments of a call: camelCase or snake_case, and the usual names of a workload's id. Pure. */
import * as z from 'zod';
import { parameterError } from './failures.ts';
import type { Tool } from './tool.ts';

/** Other names under which agents send a parameter. */
const otherNames: Readonly<Record<string, string>> = {
  jobId: 'workloadId',
  id: 'workloadId',
  nodeRank: 'rank',
  maxRuntimeSec: 'maxRuntimeSeconds',
};

/** @throws {MusterError} `invalid`, with every problem */
export function readArguments(tool: Pick<Tool, 'name' | 'input'>, given: unknown): unknown {
  const parameters = Object.keys(tool.input.shape);
  // Compiling the schema would take `new Function`, which Muster allows nowhere.
  const result = tool.input.safeParse(renamed(given, parameters), { jitless: true });
  if (result.success) return result.data;
  throw parameterError(tool.name, result.error.issues, parameters);
}

function renamed(given: unknown, parameters: readonly string[]): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given ?? {};
  const known = new Set(parameters);
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (known.has(name)) return [name, value];
      const camel = name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      const plain = known.has(camel) ? camel : (otherNames[camel] ?? camel);
      return [known.has(plain) ? plain : name, value];
    }),
  );
}

/** A schema as the library for the protocol takes it. What it means is checked here, in words of our own. */
export interface AdvertisedSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'muster';
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>;
      readonly output: () => Record<string, unknown>;
    };
  };
}

/** Made once for each schema: a server is made for each request over HTTP. */
const made = new WeakMap<z.ZodObject, AdvertisedSchema>();

/** Accepts anything, and shows clients what is expected: `readArguments` checks it. */
export function advertised(schema: z.ZodObject, io: 'input' | 'output'): AdvertisedSchema {
  const known = made.get(schema);
  if (known !== undefined) return known;
  const json = z.toJSONSchema(schema, { target: 'draft-2020-12', io }) as Record<string, unknown>;
  const shown: AdvertisedSchema = {
    '~standard': {
      version: 1,
      vendor: 'muster',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => json, output: () => json },
    },
  };
  made.set(schema, shown);
  return shown;
}
