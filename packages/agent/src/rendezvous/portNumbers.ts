/**
 * Which ports are given to tasks. Between the moment a port is freed for a task and the moment the task listens on it,
 * which for a Python program is seconds, nobody else must take it: the kernel would for an outgoing connection, and we
 * for another task. So they lie outside of what the kernel hands out, and none is given a second time before all others
 * have been.
 */

/** First choice, so that a firewall between nodes has one range to open. */
const preferred = { first: 20_000, last: 29_999 };
/** Where the kernel's own range, or others' reservations, leave too little of it. */
const everything = { first: 10_000, last: 65_535 };
/** Fewer, and a busy node would come round to the first one again within seconds. */
const enough = 1_000;

export interface PortSettings {
  /** `/proc/sys/net/ipv4/ip_local_port_range`; null: cannot be read */
  readonly ephemeral: string | null;
  /** `/proc/sys/net/ipv4/ip_local_reserved_ports`: kept for somebody else. */
  readonly reserved: string | null;
}

/** @returns in rising order, never empty */
export function taskPorts({ ephemeral, reserved }: PortSettings): readonly number[] {
  const ranges = [
    ...parseRanges((ephemeral ?? '32768 60999').trim().replace(/\s+/, '-')),
    ...parseRanges(reserved ?? ''),
  ];
  const isFree = (port: number) => !ranges.some(({ first, last }) => port >= first && port <= last);
  const inPreferred = numbersIn(preferred).filter(isFree);
  if (inPreferred.length >= enough) return inPreferred;
  const outside = numbersIn(everything).filter(isFree);
  // A kernel that may hand out everything: better a port that it might take than none.
  return outside.length >= enough ? outside : numbersIn(everything);
}

/** @param chance from 0 to 1: agents of one machine begin at different places */
export function* inTurn(ports: readonly number[], chance: () => number): Generator<number, never> {
  for (let index = Math.floor(chance() * ports.length); ; index += 1) {
    yield ports[index % ports.length] ?? everything.first;
  }
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/** @param text `8080,9148-9150` */
function parseRanges(text: string): readonly Range[] {
  return text.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim()) ?? [];
    return first === undefined ? [] : [{ first: Number(first), last: Number(last) }];
  });
}

function numbersIn({ first, last }: Range): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
