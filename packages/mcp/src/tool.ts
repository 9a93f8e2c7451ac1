/** What a tool is: one thing that an agent may do, as data and a function, whichever transport its calls use. */
import type { Verb } from '@muster/common/people';
import type { MusterApi } from '@muster/common/wire/client';
import type * as z from 'zod';

/** What a call of a tool works with. */
export interface ToolContext {
  /** The API, with the rights of the caller. */
  readonly api: MusterApi;
  /** Wall clock, for times that callers give relative to now. */
  readonly nowMs: () => number;
  readonly newRequestId: () => string;
  /** Fires when the caller no longer waits. */
  readonly abort: AbortSignal;
}

export interface ToolAnswer<Data> {
  /** By the output schema of the tool. */
  readonly data: Data;
  /** The same in one line or two. */
  readonly text: string;
}

/** `change` may be undone or adds something; `destroy` ends or discards what was there. */
export type ToolEffect = 'read' | 'change' | 'destroy';

interface ToolFacts {
  /** Part of the API: it never changes meaning. */
  readonly name: string;
  readonly title: string;
  /** For the model that chooses among the tools: what it does, and when to use which parameter. */
  readonly about: string;
  /** A token that does not allow this is not offered the tool. */
  readonly verb: Verb;
  readonly effect: ToolEffect;
  /** Whether a second call with the same parameters changes nothing more. */
  readonly idempotent: boolean;
}

export interface Tool extends ToolFacts {
  readonly input: z.ZodObject;
  readonly output: z.ZodObject;
  /** @param input by the input schema */
  readonly run: (input: never, context: ToolContext) => Promise<ToolAnswer<unknown>>;
}

/** Checks that a tool takes and returns what its schemas define. */
export function tool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolFacts & {
    readonly input: Input;
    readonly output: Output;
    readonly run: (
      input: z.output<Input>,
      context: ToolContext,
    ) => Promise<ToolAnswer<Readonly<z.input<Output>>>>;
  },
): Tool {
  return definition;
}
