/**
 * The engine's log, turned back into the bytes that the container wrote.
 *
 * The engine sends frames: a header of 8 bytes (stream 1 or 2, three zeros, big-endian length), then a time stamp, a space
 * and a payload, which is one line or, of a line longer than 16 KiB, one part of it. Nothing else marks a part: it ends
 * without a newline. The stamps are asked for only because frames with an empty payload are not sent without them.
 *
 * Engines up to 20.10 at least forget the newline after the last part of a long line (log driver `local`). It is put back
 * when something follows. At the very end of the log nobody can say whether the task wrote it, so nothing is added there.
 */
const headerBytes = 8;
/** The buffer in which the engine collects a line; a part that is not the last one fills it. */
const partBytes = 16 * 1024;
const newline = 0x0a;
const space = 0x20;

export class FrameDecoder {
  private readonly header = Buffer.alloc(headerBytes);
  private headerBytes = 0;
  private stream = 0;
  private frameBytesLeft = 0;
  private isInStamp = false;
  private payloadBytes = 0;
  private endsWithNewline = false;
  private newlineOwed = false;
  /** Streams whose last frame was a part with more to come. */
  private readonly unfinished = new Set<number>();

  /** @returns what the container wrote, as far as `chunk` tells; frames may be cut anywhere between chunks */
  push(chunk: Buffer): Buffer {
    const output: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.frameBytesLeft > 0) {
        const piece = chunk.subarray(at, at + this.frameBytesLeft);
        at += piece.length;
        this.frameBytesLeft -= piece.length;
        const payload = this.withoutStamp(piece);
        if (payload.length > 0) output.push(payload);
      } else {
        const copied = chunk.copy(this.header, this.headerBytes, at, at + headerBytes - this.headerBytes);
        at += copied;
        this.headerBytes += copied;
        if (this.headerBytes < headerBytes) break;
        if (this.newlineOwed) output.push(Buffer.of(newline));
        this.openFrame();
      }
      if (this.frameBytesLeft === 0) this.closeFrame();
    }
    return output.length === 1 && output[0] !== undefined ? output[0] : Buffer.concat(output);
  }

  private openFrame(): void {
    this.stream = this.header.readUInt8(0);
    if (this.stream !== 1 && this.stream !== 2) {
      throw new Error(
        `the container engine sent a log frame for stream ${this.stream}, which does not exist`,
      );
    }
    this.frameBytesLeft = this.header.readUInt32BE(4);
    this.isInStamp = true;
    this.payloadBytes = 0;
    this.endsWithNewline = false;
    this.newlineOwed = false;
  }

  private withoutStamp(piece: Buffer): Buffer {
    let payload = piece;
    if (this.isInStamp) {
      const end = piece.indexOf(space);
      this.isInStamp = end === -1;
      payload = end === -1 ? piece.subarray(piece.length) : piece.subarray(end + 1);
    }
    this.payloadBytes += payload.length;
    if (payload.length > 0) this.endsWithNewline = payload[payload.length - 1] === newline;
    return payload;
  }

  private closeFrame(): void {
    this.headerBytes = 0;
    const continuesLine = this.unfinished.has(this.stream);
    const hasMoreToCome = this.payloadBytes === partBytes && !this.endsWithNewline;
    this.newlineOwed = continuesLine && !hasMoreToCome && !this.endsWithNewline;
    if (hasMoreToCome) this.unfinished.add(this.stream);
    else this.unfinished.delete(this.stream);
  }
}
