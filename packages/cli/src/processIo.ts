/** The streams and signals of this process as `Io`. */
import type { DaemonMessage, Input, Io, Output, SupervisorLink } from './io.ts';
import { OutputClosedError } from './io.ts';

/** SIGHUP: the terminal was closed. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function processIo(): Io {
  return {
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
    stdin,
    onStopRequest,
    supervisor: process.send === undefined ? null : supervisorLink,
  };
}

function outputOf(stream: NodeJS.WriteStream): Output {
  // A failed write reports to its callback; without a listener it would also be thrown as an unhandled event.
  stream.on('error', () => {});
  return {
    isTerminal: stream.isTTY === true,
    columns: () => (stream.isTTY === true ? stream.columns || 80 : null),
    rows: () => (stream.isTTY === true ? stream.rows || 24 : null),
    onResize(listener) {
      stream.on('resize', listener);
      return () => stream.off('resize', listener);
    },
    write: (data) =>
      new Promise((resolve, reject) => {
        stream.write(data, (error) => {
          if (error === null || error === undefined) resolve();
          else reject(closedReader(error) ? new OutputClosedError() : error);
        });
      }),
  };
}

function closedReader(error: NodeJS.ErrnoException): boolean {
  return error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED';
}

const stdin: Input = {
  get isTerminal() {
    return process.stdin.isTTY === true;
  },
  onKeys(listener) {
    const onData = (data: Buffer) => listener(data.toString('latin1'));
    process.stdin.setRawMode(true).on('data', onData).resume();
    return () => {
      process.stdin.off('data', onData).pause().setRawMode(false);
    };
  },
  async readAll(bytesMax) {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bytesMax) return null;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  },
};

function onStopRequest(listener: () => void): () => void {
  for (const signal of stopSignals) process.on(signal, listener);
  // A supervisor that was killed cannot send a signal, but its end of the channel closes with it.
  process.on('disconnect', listener);
  return () => {
    for (const signal of stopSignals) process.off(signal, listener);
    process.off('disconnect', listener);
  };
}

const supervisorLink: SupervisorLink = {
  // A supervisor that is gone gets no messages, and `disconnect` notices that.
  send: (message: DaemonMessage) => new Promise((resolve) => process.send?.(message, () => resolve())),
};
