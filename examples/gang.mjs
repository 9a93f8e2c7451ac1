/**
 * The ranks of a training job and how they add up numbers: plain TCP, nothing but Node 18 or newer.
 *
 * Rank 0 listens on MASTER_ADDR:MASTER_PORT and keeps a link to every other rank; the others connect to it
 * and say which job and attempt they belong to, so that a process left over from another one is refused. A
 * link that breaks ends the process at once: without all ranks there is no sum, and the supervisor restarts
 * the whole job.
 */
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const STOPPED_STATUS = 143; // 128 + SIGTERM: stopped, which is neither finished nor failed

const FRAME_BYTES_MAX = 64 * 1024 * 1024;

export const toBytes = (numbers) => Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);

/** Copies, because a Float64Array must begin at a multiple of 8 and bytes from outside begin anywhere. */
export const toNumbers = (bytes) => {
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};

/** One TCP connection that carries frames: a 4-byte little-endian length, then that many bytes. */
class Link {
  onLost = () => {};
  #socket;
  #frames;

  constructor(socket) {
    this.#socket = socket;
    this.#frames = this.#split();
    let reason = 'Socket closed';
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 10_000); // notices a machine that went away without a word
    socket.on('error', (error) => {
      reason = error.code ?? error.message;
    });
    socket.on('close', () => this.onLost(reason));
  }

  async *#split() {
    let unread = Buffer.alloc(0);
    for await (const chunk of this.#socket) {
      unread = Buffer.concat([unread, chunk]);
      while (unread.length >= 4) {
        const end = 4 + unread.readUInt32LE();
        if (end > FRAME_BYTES_MAX) throw new Error('not a rank of this program');
        if (end > unread.length) break;
        yield unread.subarray(4, end);
        unread = unread.subarray(end);
      }
    }
  }

  send(bytes) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    this.#socket.write(Buffer.concat([length, bytes]));
  }

  sendJson(value) {
    this.send(Buffer.from(JSON.stringify(value)));
  }

  /** The next frame; rejects when the connection is lost first. */
  async receive() {
    const { value, done } = await this.#frames.next();
    if (done) throw new Error('Socket closed');
    return value;
  }

  async receiveJson() {
    return JSON.parse(await this.receive());
  }

  /** Closes once everything sent is on its way. */
  close() {
    return new Promise((resolve) => this.#socket.end(resolve));
  }
}

/** All ranks of one attempt, seen from one of them: `meet`, `begin`, `allReduce` many times, `part`. */
export class Gang {
  #place;
  #seconds;
  #end;
  #links = new Map(); // by rank; rank 0 has all the others here, the others have only rank 0
  #stage = 'meeting'; // then 'training', then 'parting'
  #lastProblem = 'no answer';

  /**
   * @param place job, attempt, rank, worldSize, masterAddr, masterPort
   * @param seconds how long to wait: for all ranks at `meeting`, later for a rank in `silence`
   * @param end ends the process with a status and a message; must not return
   */
  constructor(place, seconds, end) {
    this.#place = place;
    this.#seconds = seconds;
    this.#end = end;
  }

  /** Resolves when this rank's links stand. */
  async meet() {
    const { rank, worldSize } = this.#place;
    const { meeting } = this.#seconds;
    const giveUp = () => this.#end(1, `rendezvous timeout after ${meeting} s: ${this.#missing()}`);
    const timer = setTimeout(giveUp, meeting * 1000);
    if (rank > 0) await this.#join();
    else if (worldSize > 1) await new Promise((allHere) => this.#listen(allHere));
    clearTimeout(timer);
  }

  get #address() {
    return `${this.#place.masterAddr}:${this.#place.masterPort}`;
  }

  #missing() {
    if (this.#place.rank > 0) return `rank 0 at ${this.#address}: ${this.#lastProblem}`;
    const others = Array.from({ length: this.#place.worldSize - 1 }, (_, index) => index + 1);
    return `no sign of rank ${others.filter((other) => !this.#links.has(other)).join(', ')}`;
  }

  /** Listens until the process ends: a late process of another attempt is told why it is not wanted. */
  #listen(allHere) {
    const { job, attempt, worldSize, masterAddr, masterPort } = this.#place;
    const server = createServer(async (socket) => {
      const { remoteAddress } = socket;
      const link = new Link(socket);
      const hello = await link.receiveJson().catch(() => null);
      const objection = this.#objectionTo(hello);
      if (objection) {
        console.error(`[rank0]: refused a connection from ${remoteAddress}: ${objection}`);
        link.sendJson({ refused: objection, job, attempt });
        await link.close();
        return;
      }
      this.#adopt(hello.rank, link);
      link.sendJson({ welcome: true });
      if (this.#links.size === worldSize - 1) allHere();
    });
    server.on('error', (error) => this.#end(1, `cannot listen on ${this.#address}: ${error.message}`));
    server.listen(masterPort, masterAddr);
  }

  #objectionTo(hello) {
    if (hello?.job === undefined) return 'it is no rank of this program';
    for (const key of ['job', 'attempt', 'worldSize']) {
      const [theirs, ours] = [hello[key], this.#place[key]];
      if (theirs !== ours) return `its ${key} is ${theirs}, ours is ${ours}`;
    }
    const known = Number.isInteger(hello.rank) && hello.rank > 0 && hello.rank < this.#place.worldSize;
    if (!known) return `there is no rank ${hello.rank} to join`;
    return this.#links.has(hello.rank) ? `rank ${hello.rank} is here already` : null;
  }

  async #join() {
    const { job, attempt, rank, worldSize, masterAddr, masterPort } = this.#place;
    for (;;) {
      const link = new Link(connect(masterPort, masterAddr));
      link.sendJson({ job, attempt, rank, worldSize });
      const unreachable = (error) => ({ unreachable: error.code ?? error.message });
      const answer = await link.receiveJson().catch(unreachable);
      if (answer.welcome) return this.#adopt(0, link);
      // An earlier attempt of this very job may be on its way out; any other refusal is final.
      const isFinal = answer.refused && !(answer.job === job && answer.attempt < attempt);
      if (isFinal) this.#end(1, `refused by rank 0 at ${this.#address}: ${answer.refused}`);
      this.#lastProblem = answer.unreachable ?? answer.refused;
      void link.close();
      await sleep(200);
    }
  }

  #adopt(peer, link) {
    this.#links.set(peer, link);
    link.onLost = (reason) => this.#lose(peer, reason);
  }

  #lose(peer, reason) {
    if (this.#stage !== 'parting') this.#end(1, `lost rank ${peer} while ${this.#stage}: ${reason}`);
  }

  /** Gives every rank rank 0's numbers, in place. From then on a stop is a matter of all ranks. */
  async begin(numbers) {
    if (this.#place.rank === 0) this.#sendAll(toBytes(numbers));
    else numbers.set(await this.#receive(0, numbers.length));
    this.#stage = 'training';
  }

  /** Replaces `numbers` on every rank by their sum: always in rank order, so always the same bits. */
  async allReduce(numbers) {
    if (this.#place.rank > 0) {
      this.#links.get(0).send(toBytes(numbers));
      numbers.set(await this.#receive(0, numbers.length));
      return;
    }
    for (let peer = 1; peer < this.#place.worldSize; peer += 1) {
      const theirs = await this.#receive(peer, numbers.length);
      for (let i = 0; i < numbers.length; i += 1) numbers[i] += theirs[i];
    }
    this.#sendAll(toBytes(numbers));
  }

  /** Rank 0 does `lastWork` and the others wait for it: none reports success before everything is saved. */
  async part(lastWork) {
    if (this.#place.rank > 0) {
      await this.#receive(0, 1);
      this.#stage = 'parting';
      return;
    }
    this.#stage = 'parting';
    await lastWork();
    this.#sendAll(toBytes(new Float64Array(1)));
    await Promise.all(Array.from(this.#links.values(), (link) => link.close()));
  }

  /**
   * To be called on SIGTERM. Ends the process while this rank still waits for others, who may never come;
   * later the caller passes the wish on with the next all-reduce, so that all ranks stop at the same step.
   */
  stop() {
    const isWelcomed = this.#place.rank > 0 && this.#links.size > 0;
    if (this.#stage !== 'meeting' || isWelcomed) return;
    this.#sendAll(Buffer.alloc(0)); // in place of the numbers that the others expect in `begin`
    this.#leave();
  }

  #leave() {
    this.#end(STOPPED_STATUS, 'stopped before training began');
  }

  #sendAll(bytes) {
    for (const link of this.#links.values()) link.send(bytes);
  }

  /** Seconds to wait for a frame. Rank 0 gives up first: it alone can say which rank it is that is silent. */
  #patience() {
    const { meeting, silence } = this.#seconds;
    if (this.#place.rank === 0) return silence;
    return 2 * silence + (this.#stage === 'meeting' ? meeting : 0); // some ranks may still have to come
  }

  async #receive(peer, length) {
    const limit = this.#patience();
    // Ticks, not the clock: a rank that was frozen for an hour and thawed has not waited for an hour.
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
      if (ticks > limit) this.#end(1, `no word from rank ${peer} for ${limit} s: does it hang?`);
    }, 1000);
    const link = this.#links.get(peer);
    const bytes = await link.receive().catch((error) => this.#lose(peer, error.code ?? error.message));
    clearInterval(timer);
    if (bytes.length === 0) this.#leave();
    if (bytes.length !== 8 * length) {
      this.#end(1, `rank ${peer} sent ${bytes.length / 8} numbers, not ${length}: was it given other flags?`);
    }
    return toNumbers(bytes);
  }
}
