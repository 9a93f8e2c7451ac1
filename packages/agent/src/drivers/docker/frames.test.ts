import { describe, expect, it } from 'vitest';
import { FrameDecoder } from './frames.ts';

const partBytes = 16 * 1024;

const timestamp = '2026-01-02T03:04:05.000000000Z ';

function frame(stream: 1 | 2, payload: string | Buffer, stamp = timestamp): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(stamp.length + Buffer.byteLength(payload), 4);
  return Buffer.concat([header, Buffer.from(stamp), Buffer.from(payload)]);
}

function decode(...chunks: Buffer[]): string {
  const decoder = new FrameDecoder();
  return Buffer.concat(chunks.map((chunk) => decoder.push(chunk))).toString('latin1');
}

describe('FrameDecoder', () => {
  const log = Buffer.concat([
    frame(1, 'first line\n', '2026-01-02T03:04:05.000000000+02:00 '),
    frame(2, ''),
    frame(2, '\n'),
    frame(1, Buffer.from([0, 1, 2, 255, 254, 10])),
    frame(2, 'no newline at the end'),
  ]);
  const written = 'first line\n\n\x00\x01\x02\xff\xfe\nno newline at the end';

  it('puts frames of both streams together in their order', () => {
    expect(decode(log)).toBe(written);
  });

  it('does so wherever two chunks are cut', () => {
    for (let at = 0; at <= log.length; at++) {
      expect(decode(log.subarray(0, at), log.subarray(at)), `cut at byte ${at}`).toBe(written);
    }
  });

  it('does so byte by byte', () => {
    expect(decode(...Array.from(log, (byte) => Buffer.of(byte)))).toBe(written);
  });

  it('joins the parts of a long line', () => {
    const long = 'x'.repeat(partBytes);
    expect(decode(frame(1, long), frame(1, long), frame(1, 'rest\n'), frame(1, 'next\n'))).toBe(
      `${long}${long}rest\nnext\n`,
    );
  });

  it('puts back the newline that the engine forgets after the last part', () => {
    const long = 'x'.repeat(partBytes);
    expect(decode(frame(1, long), frame(1, 'rest'), frame(1, 'next\n'))).toBe(`${long}rest\nnext\n`);
    expect(decode(frame(1, long), frame(1, ''), frame(2, 'other stream\n'))).toBe(`${long}\nother stream\n`);
  });

  it('does so wherever two chunks are cut', () => {
    const long = 'x'.repeat(partBytes);
    const parts = Buffer.concat([frame(1, long), frame(1, 'rest'), frame(1, 'next\n')]);
    for (let at = partBytes; at <= parts.length; at++) {
      expect(decode(parts.subarray(0, at), parts.subarray(at)), `cut at byte ${at}`).toBe(
        `${long}rest\nnext\n`,
      );
    }
  });

  it('adds nothing at the end of the log', () => {
    const long = 'x'.repeat(partBytes);
    expect(decode(frame(1, long), frame(1, 'rest'))).toBe(`${long}rest`);
    expect(decode(frame(1, 'short'), frame(2, 'short'))).toBe('shortshort');
  });

  it('takes a line of exactly one part for a whole line', () => {
    const whole = `${'x'.repeat(partBytes - 1)}\n`;
    expect(decode(frame(1, whole), frame(1, 'tail'), frame(2, 'other\n'))).toBe(`${whole}tailother\n`);
  });

  it('refuses what is no log', () => {
    expect(() => decode(Buffer.from('HTTP/1.1 200 OK\r\n'))).toThrow('log frame for stream 72');
  });
});
