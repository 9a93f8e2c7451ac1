/** The YAML parser's errors in words for someone who has never read the YAML specification. */

interface Wording {
  readonly code: string;
  /** Which of the code's messages; absent: all others. */
  readonly message?: RegExp;
  readonly problem: string;
  readonly expected: string;
}

/** First match wins. */
const wordings: readonly Wording[] = [
  { code: 'TAB_AS_INDENT', problem: 'tab used for indentation', expected: 'spaces' },
  {
    code: 'BAD_INDENT',
    message: /end with a ]/,
    problem: 'a list that was opened with "[" is not closed here',
    expected: '"]" at its end',
  },
  {
    code: 'BAD_INDENT',
    message: /end with a }/,
    problem: 'a mapping that was opened with "{" is not closed here',
    expected: '"}" at its end',
  },
  {
    code: 'BAD_INDENT',
    problem: 'indented differently from what it belongs to',
    expected: 'the same number of spaces before all keys of a mapping and before all items of a list',
  },
  {
    code: 'MISSING_CHAR',
    message: /closing ["']quote/,
    problem: 'a quote is not closed',
    expected: 'a closing quote',
  },
  {
    code: 'MISSING_CHAR',
    message: /end with a ]/,
    problem: 'a list that was opened with "[" is never closed',
    expected: '"]" at its end',
  },
  {
    code: 'MISSING_CHAR',
    message: /end with a }/,
    problem: 'a mapping that was opened with "{" is never closed',
    expected: '"}" at its end',
  },
  {
    code: 'MISSING_CHAR',
    message: /followed by map values/,
    problem: 'not a setting',
    expected: 'a key, a colon, a space and a value, such as priority: 50',
  },
  {
    code: 'MISSING_CHAR',
    message: /Missing , /,
    problem: 'items run together',
    expected: 'a comma between them',
  },
  {
    code: 'BLOCK_AS_IMPLICIT_KEY',
    problem: 'a value that contains another "key: value"',
    expected: 'quotes around text that holds ": ", or the inner setting on a line of its own',
  },
  {
    code: 'MULTILINE_IMPLICIT_KEY',
    problem: 'not a setting',
    expected: 'a key, a colon, a space and a value on one line, such as priority: 50',
  },
  {
    code: 'BAD_SCALAR_START',
    problem: 'a value that begins with a reserved character',
    expected: 'quotes around it',
  },
  {
    code: 'BAD_DQ_ESCAPE',
    problem: 'an unknown escape in double quotes',
    expected: 'a doubled backslash, or single quotes around the text',
  },
  {
    code: 'BLOCK_IN_FLOW',
    problem: 'an indented block inside brackets',
    expected: 'brackets or quotes inside brackets',
  },
  { code: 'NON_STRING_KEY', problem: 'a list or mapping used as a key', expected: 'plain text as key' },
  {
    code: 'BAD_ALIAS',
    problem: 'an incomplete alias or anchor',
    expected: 'quotes around text that begins with * or &',
  },
];

export function explainYamlError(
  code: string,
  message: string,
): { readonly problem: string; readonly expected: string } {
  const known = wordings.find((wording) => wording.code === code && (wording.message?.test(message) ?? true));
  return (
    known ?? { problem: message.charAt(0).toLowerCase() + message.slice(1), expected: 'valid YAML or JSON' }
  );
}
