/**
 * Continuity tokens: what tells the agent that was welcomed last under a name from copies of its data directory.
 *
 * Each Hello is answered by the next token, in two phases. The offer is stored here, then the agent stores it, then its
 * confirmation is stored here, and only with that the token before is spent. Until then the agent keeps both and presents both:
 * wherever one of the two dies, and however late a Hello arrives that the agent has given up, one of them is accepted. Every offer
 * has a number of its own, so two copies that present the same token are offered different ones, and only the newest offer can be
 * confirmed.
 *
 * Pure, apart from the keyed hash. The crash points are a table in `continuity.test.ts`.
 */
import type { NodeName, RandomBytes } from '@muster/common/ids';
import type { TokenChain } from '../model.ts';
import type { Proofs } from './proofs.ts';

/** What a presented token shows. */
export type TokenVerdict =
  /** The agent was welcomed last, or it is the first. */
  | 'holder'
  /** This store never issued a token of this number, but proves that it is its own: the store was restored. */
  | 'newer'
  /** Another agent has continued from here: this is a copy, or an earlier state of the machine. */
  | 'spent'
  /** It has no token of this chain, although another agent has. */
  | 'none';

const idBytes = 6;
const saltBytes = 9;

export function newChain(random: RandomBytes): TokenChain {
  return { id: randomText(random, idBytes), issued: 0, current: null, pending: null };
}

/** @param presented the tokens on the agent's disk, newest first */
export function judgeToken(
  chain: TokenChain,
  presented: readonly string[],
  node: NodeName,
  proofs: Pick<Proofs, 'isOfContinuity'>,
): TokenVerdict {
  const own = presented.filter((text) => {
    const token = readToken(text);
    return token?.chain === chain.id && proofs.isOfContinuity(node, token.body, token.mac);
  });
  if (own.some((text) => numberOf(chain, text) > chain.issued)) return 'newer';
  if (chain.current === null) return 'holder';
  if (presented.some((text) => text === chain.current || text === chain.pending)) return 'holder';
  return own.length > 0 ? 'spent' : 'none';
}

/**
 * The chain with another token on offer. A presented token that was on offer, or that is newer than the store's, is confirmed
 * by that.
 * @param presented the tokens of a `holder`, or ones that are `newer`, newest first
 */
export function offerToken(
  chain: TokenChain,
  presented: readonly string[],
  node: NodeName,
  random: RandomBytes,
  proofs: Pick<Proofs, 'ofContinuity'>,
): TokenChain & { readonly pending: string } {
  const issued = Math.max(chain.issued, newestNumber(chain, presented)) + 1;
  const confirmed = presented.find((text) => text === chain.pending || numberOf(chain, text) > chain.issued);
  const body = `${chain.id}.${issued}.${randomText(random, saltBytes)}`;
  return {
    id: chain.id,
    issued,
    current: confirmed ?? chain.current,
    pending: `${body}.${proofs.ofContinuity(node, body)}`,
  };
}

/** The agent has the offered token on its disk. Returns null for a token that is no longer on offer. */
export function keepToken(chain: TokenChain, token: string): TokenChain | null {
  return token === chain.pending ? { ...chain, current: token, pending: null } : null;
}

/** The agent could not store the offered token, so that it presents the one before again. */
export function withdrawToken(chain: TokenChain, token: string): TokenChain | null {
  return token === chain.pending ? { ...chain, pending: null } : null;
}

/** The highest number of the presented tokens of this chain; 0: none of them is. */
export function newestNumber(chain: TokenChain, presented: readonly string[]): number {
  return presented.reduce((newest, text) => Math.max(newest, numberOf(chain, text)), 0);
}

function numberOf(chain: TokenChain, text: string): number {
  const token = readToken(text);
  return token?.chain === chain.id ? token.number : 0;
}

interface Token {
  readonly chain: string;
  readonly number: number;
  readonly body: string;
  readonly mac: string;
}

function readToken(text: string): Token | null {
  const match = /^(([\w-]{1,32})\.(\d{1,15})\.[\w-]{1,32})\.([\w-]{1,64})$/.exec(text);
  const [, body, chain, number, mac] = match ?? [];
  if (body === undefined || chain === undefined || mac === undefined) return null;
  return { chain, number: Number(number), body, mac };
}

function randomText(random: RandomBytes, bytes: number): string {
  return Buffer.from(random(bytes)).toString('base64url');
}
