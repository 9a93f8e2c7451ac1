/** Finds what a user has named: by its id, the beginning of it, its name, or `latest`, as for jobs. Pure. */
import { MusterError } from '@muster/common/errors';
import { closest } from '@muster/common/spec/suggest';

const prefixLengthMin = 6;

/**
 * @param visible newest first: of several with one name the newest is meant, and with `latest` the newest of all, whatever it is named
 * @param words `plural` for the ids of several, `missing` for one that is not there, `list` for the command that lists them
 * @throws {MusterError} `not_found`, or `invalid` for the beginning of several ids
 */
export function resolveNamed<T extends { readonly id: string; readonly name: string }>(
  visible: readonly T[],
  text: string,
  words: { readonly plural: string; readonly missing: (text: string) => string; readonly list: string },
): T {
  if (text === 'latest') {
    const [newest] = visible;
    if (newest !== undefined) return newest;
    throw new MusterError('not_found', `there are no ${words.plural} yet, so that none is the latest`);
  }
  const exact = visible.find(({ id, name }) => id === text || name === text);
  if (exact !== undefined) return exact;
  const begun = text.length < prefixLengthMin ? [] : visible.filter(({ id }) => id.startsWith(text));
  const [only, another] = begun;
  if (another !== undefined)
    throw new MusterError('invalid', `${text} is the beginning of several ids of ${words.plural}`);
  if (only !== undefined) return only;
  const meant = closest(
    text,
    visible.map(({ name }) => name),
  );
  const hint = meant === null ? `\`${words.list}\` lists them` : `did you mean "${meant}"?`;
  throw new MusterError('not_found', `${words.missing(text.slice(0, 60))}; ${hint}`);
}
