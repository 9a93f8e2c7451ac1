/** Header blocks as servers write them. */
import { expect, test } from 'vitest';
import { decodeHeaders, encodeHeaders } from './headers.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

test('what is encoded is decoded, however long', () => {
  const headers = [
    [':path', '/muster.v1.Muster/Submit'],
    ['authorization', `Bearer ${'x'.repeat(5_000)}`],
    ['empty', ''],
    ['x-127', 'y'.repeat(127)],
    ['x-254', 'z'.repeat(254)],
  ] as const;
  expect([...decodeHeaders(encodeHeaders(headers))]).toEqual(headers);
});

// RFC 7541, appendix C.6.1, in which every text is Huffman-coded.
test('entries of the static table and Huffman-coded texts are read', () => {
  const block = hex(
    '48 82 64 02 58 85 ae c3 77 1a 4b 61 96 d0 7a be 94 10 54 d4 44 a8 20 05 95 04 0b 81 66 e0 82 a6 2d 1b ff ' +
      '6e 91 9d 29 ad 17 18 63 c7 8f 0b 97 c8 e9 ae 82 ae 43 d3',
  );
  expect([...decodeHeaders(block)]).toEqual([
    [':status', '302'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ]);
});

test('an indexed header after the announcement of an empty table', () => {
  expect([...decodeHeaders(hex('20 88'))]).toEqual([[':status', '200']]);
});

test.each([
  ['an entry of a dynamic table', 'be', /entry 62/],
  ['a dynamic table', '3f e1 1f', /dynamic table/],
  ['a text that is cut off', '00 05 61', /cut off/],
  ['a number that is cut off', 'ff', /cut off/],
  ['a number without an end', 'ff ff ff ff ff ff ff', /too large/],
  ['Huffman padding of zeros', '00 01 61 81 00', /cut off/],
])('%s is refused', (_what, block, message) => {
  expect(() => decodeHeaders(hex(block))).toThrow(message);
});
