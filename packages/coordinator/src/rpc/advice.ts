/** The API's call about advice. It reads no state: only the prices of the settings count beside the request. */
import { adviseOn } from '@muster/advice/file/advise';
import { gpuTable, type PriceOfType, withPrices } from '@muster/advice/gpus';
import { MusterError } from '@muster/common/errors';
import { noOrigin, toProblems } from '@muster/common/spec/problems';
import { type MusterCalls, unary } from './calls.ts';

/** Contexts of people have some hundred bytes; a search space of a hundred parameters has ten thousand. */
const contextBytesMax = 64 * 1024;

export interface AdviceCallParts {
  /** Of a kind of GPU, or of a node, of which advice knows none. */
  readonly prices: readonly (PriceOfType & { readonly of: 'type' | 'node' })[];
}

export function adviceCalls({ prices }: AdviceCallParts): Pick<MusterCalls, 'Advise'> {
  const gpus = withPrices(
    gpuTable,
    prices.filter(({ of }) => of === 'type'),
  );
  return {
    Advise: unary(async ({ contextJson }) => {
      const outcome = adviseOn(decodeContext(contextJson), gpus);
      if (outcome.ok) return { answer: JSON.stringify(outcome.answer) };
      const problems = toProblems(outcome.findings.map((finding) => ({ finding, origin: noOrigin })));
      const [first] = problems;
      const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
      throw new MusterError(
        'invalid',
        `invalid training context: ${first?.path ? `${first.path}: ` : ''}${first?.message ?? ''}${more}`,
        { problems },
      );
    }),
  };
}

/** @throws {MusterError} `invalid` */
function decodeContext(text: string): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > contextBytesMax)
    throw new MusterError('invalid', `the training context has ${bytes} bytes; at most ${contextBytesMax}`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MusterError('invalid', 'context_json is not JSON', { cause: error });
  }
}
