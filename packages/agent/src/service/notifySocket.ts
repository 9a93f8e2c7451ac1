/**
 * Datagrams to systemd (sd_notify(3)). Node has no such sockets, so libc sends them, from this very process: systemd then
 * needs to believe nobody else (`NotifyAccess=main`), which it would for messages of the program `systemd-notify`.
 */
import { constants } from 'node:os';
import koffi from 'koffi';

const unixFamily = 1;
const datagram = 2;
const closeOnExec = 0x80000;
const dontWait = 0x40;
const noSignal = 0x4000;
/** `sun_path` of a unix socket address. */
const pathBytesMax = 108;

export interface NotifySocket {
  /** @throws {Error} when nobody listens there, or the one who does is not keeping up */
  send(state: string): void;
}

/**
 * @param path NOTIFY_SOCKET: absolute, or abstract with `@` at its beginning
 * @throws {Error}
 */
export function openNotifySocket(path: string): NotifySocket {
  const libc = koffi.load(null);
  const socket = libc.func('socket', 'int', ['int', 'int', 'int']);
  const sendTo = libc.func('sendto', 'int', ['int', 'void *', 'size_t', 'int', 'void *', 'uint32']);
  const address = socketAddress(path);
  const file = socket(unixFamily, datagram | closeOnExec, 0) as number;
  if (file < 0) throw new Error(`no socket for ${path}: ${reason()}`);
  return {
    send(state) {
      const text = Buffer.from(state);
      const sent = sendTo(file, text, text.length, dontWait | noSignal, address, address.length) as number;
      if (sent < 0) throw new Error(`systemd cannot be notified of ${state} at ${path}: ${reason()}`);
    },
  };
}

/** struct sockaddr_un */
function socketAddress(path: string): Buffer {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : path);
  if (name.length === 0 || name.length > pathBytesMax) throw new Error(`${path} is no path of a unix socket`);
  const family = Buffer.alloc(2);
  family.writeUInt16LE(unixFamily);
  // One that is not abstract ends with a zero byte, for which there is room.
  return Buffer.concat([family, name, ...(path.startsWith('@') ? [] : [Buffer.alloc(1)])]);
}

function reason(): string {
  const number = koffi.errno();
  const known = Object.entries(constants.errno).find(([, value]) => value === number);
  return known?.[0] ?? `error ${number}`;
}
