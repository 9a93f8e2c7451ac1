/** `adjtimex(2)`, which only a native call reaches. A file of its own, so that the library is loaded only where it is asked. */
import koffi from 'koffi';

/** `struct timex` has 208 bytes on 64-bit Linux; some to spare. */
const timexBytes = 512;
/** Offset of `timex.status`, behind `modes` and four longs. */
const statusOffset = 40;
/** STA_UNSYNC: set by the kernel until something like NTP keeps its clock. */
const unsynchronised = 0x40;

/** True if the kernel says that its clock is synchronised. Null if it refuses to answer. @throws {Error} if libc has no such call */
export function isKernelSynchronised(): boolean | null {
  const adjtimex = koffi.load(null).func('adjtimex', 'int', ['void *']);
  const timex = Buffer.alloc(timexBytes);
  if ((adjtimex(timex) as number) < 0) return null;
  return (timex.readInt32LE(statusOffset) & unsynchronised) === 0;
}
