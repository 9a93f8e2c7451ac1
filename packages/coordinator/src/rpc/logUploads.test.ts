import { EventEmitter } from 'node:events';
import { Metadata, type MetadataValue } from '@grpc/grpc-js';
import { silentLogger } from '@muster/common/log';
import { expect, test, vi } from 'vitest';
import { identify } from '../auth/interceptor.ts';
import { anAgent, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { type LogUploadParts, serveUpload } from './logUploads.ts';

/** The server's end of a stream whose other end reads no answers. */
class UnreadCall extends EventEmitter {
  readonly metadata = new Metadata();
  readonly answers: MetadataValue[] = [];
  isPaused = false;

  constructor() {
    super();
    identify(this.metadata, anAgent(nodeNameOf('node-1')));
  }

  write(answer: MetadataValue): boolean {
    this.answers.push(answer);
    return false;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

const upload = {
  task: { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 },
  offset: 0,
  data: Buffer.from('x'),
  complete: false,
};

test('an agent that does not read what became of its output is not read either, until it does', async () => {
  const call = new UnreadCall();
  // Nobody knows the job: its output is dropped, and that is answered.
  const parts = { state: { jobs: new Map() }, store: { readJob: async () => null }, log: silentLogger };
  serveUpload(parts as unknown as LogUploadParts, call as unknown as Parameters<typeof serveUpload>[1]);
  call.emit('data', upload);
  await vi.waitFor(() => expect(call.answers).toHaveLength(1));
  await new Promise((resolve) => setImmediate(resolve));
  expect(call.isPaused).toBe(true);
  call.emit('drain');
  await vi.waitFor(() => expect(call.isPaused).toBe(false));
  call.emit('data', upload);
  call.emit('cancelled');
  await vi.waitFor(() => expect(call.isPaused).toBe(false));
  expect(call.listenerCount('drain')).toBe(0);
});
