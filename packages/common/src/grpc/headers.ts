/**
 * Header blocks of HTTP/2 (HPACK, RFC 7541), as far as a client needs them that allows no dynamic table. Requests are written
 * as plain literals; answers may use the static table and the Huffman code.
 */

export type Headers = ReadonlyMap<string, string>;

/** `literal never indexed, new name`: the token is among them, and no block is large. */
const literal = 0x10;

export function encodeHeaders(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(
    headers.flatMap(([name, value]) => [Buffer.from([literal]), encodeText(name), encodeText(value)]),
  );
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeLength(bytes.length), bytes]);
}

/** Seven bits in the first byte, whose eighth would say that the text is Huffman-coded. */
function encodeLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

/** @throws {Error} for a block that is cut off, or uses a table that this client does not have */
export function decodeHeaders(block: Buffer): Headers {
  const headers = new Map<string, string>();
  const reader = { block, at: 0 };
  while (reader.at < block.length) {
    const first = block[reader.at] ?? 0;
    if (first >= 0x80) {
      const [name, value] = staticEntry(readInteger(reader, 7));
      headers.set(name, value);
    } else if ((first & 0xe0) === 0x20) {
      if (readInteger(reader, 5) !== 0) throw new Error('header block with a dynamic table');
    } else {
      const index = readInteger(reader, first >= 0x40 ? 6 : 4);
      const name = index === 0 ? readText(reader) : staticEntry(index)[0];
      headers.set(name, readText(reader));
    }
  }
  return headers;
}

interface Reader {
  readonly block: Buffer;
  at: number;
}

function readByte(reader: Reader): number {
  const byte = reader.block[reader.at];
  if (byte === undefined) throw new Error('header block that is cut off');
  reader.at += 1;
  return byte;
}

function readInteger(reader: Reader, bits: number): number {
  const largest = 2 ** bits - 1;
  let value = readByte(reader) & largest;
  if (value < largest) return value;
  for (let scale = 1; scale <= 2 ** 21; scale *= 128) {
    const byte = readByte(reader);
    value += (byte & 127) * scale;
    if (byte < 128) return value;
  }
  throw new Error('header block with a number that is too large');
}

function readText(reader: Reader): string {
  const isHuffman = (reader.block[reader.at] ?? 0) >= 0x80;
  const length = readInteger(reader, 7);
  const bytes = reader.block.subarray(reader.at, reader.at + length);
  if (bytes.length < length) throw new Error('header block that is cut off');
  reader.at += length;
  return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1');
}

function staticEntry(index: number): readonly [name: string, value: string] {
  const entry = staticTable[index - 1];
  if (entry === undefined)
    throw new Error(`header block with entry ${index}, which is not in the static table`);
  const [name = '', value = ''] = entry.split(' ');
  return [name, value];
}

/** RFC 7541, appendix A: names, and the value where an entry has one. */
const staticTable = (
  ':authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|' +
  ':status 206|:status 304|:status 400|:status 404|:status 500|accept-charset|accept-encoding gzip,deflate|' +
  'accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|' +
  'content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|' +
  'cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|' +
  'last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|' +
  'server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate'
).split('|');

/**
 * RFC 7541, appendix B. The code is canonical, so the lengths of the 256 bytes' codes define it: `a` is 5 bits, `z` is 30. The
 * end-of-string symbol has the last code, of which only the beginning appears, as padding.
 */
const codeLengths =
  'isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxxbffhibdgffdgdbbbaaabbbbbbbcdkbhfibccccccccccccccccccccccdcdioijbkabababbbaccbbba' +
  'bcbaabccccckgjixprpprrrsrssssststtrstssssqrsrsstrqprrssqsrrtqrssqqrqsrssprrrsrrsvvporsruvvvwwvtuoqvwwvwtqqvvxwww' +
  'ptpqrqqsrruuttvsvwvvwwwwwxwwwwwv';

interface CodesOfLength {
  first: number;
  readonly bytes: number[];
}

let codes: readonly CodesOfLength[] | null = null;

/** Index: the length of the codes in bits. */
function huffmanCodes(): readonly CodesOfLength[] {
  if (codes !== null) return codes;
  codes = Array.from({ length: 31 }, () => ({ first: 0, bytes: [] }));
  const a = 'a'.charCodeAt(0);
  for (let byte = 0; byte < codeLengths.length; byte += 1)
    codes[codeLengths.charCodeAt(byte) - a + 5]?.bytes.push(byte);
  let next = 0;
  for (const ofLength of codes) {
    ofLength.first = next;
    next = (next + ofLength.bytes.length) * 2;
  }
  return codes;
}

function decodeHuffman(coded: Buffer): string {
  const table = huffmanCodes();
  const bytes: number[] = [];
  let code = 0;
  let length = 0;
  for (const byte of coded) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      code = code * 2 + ((byte >> bit) & 1);
      length += 1;
      const found = table[length]?.bytes[code - (table[length]?.first ?? 0)];
      if (found === undefined) continue;
      bytes.push(found);
      code = 0;
      length = 0;
    }
  }
  // The rest is padding: the beginning of the end-of-string symbol, which is all ones.
  if (length > 7 || code !== 2 ** length - 1) throw new Error('header block with a text that is cut off');
  return Buffer.from(bytes).toString('latin1');
}
