/** NVML's library, loaded into this process. Runs in the reader only: whatever goes wrong in there takes the process along. */
import koffi, { type LibraryHandle } from 'koffi';
import { functionNames, type NvmlFunction, nvmlFunctions } from './functions.ts';
import { none, tracePage } from './protocol.ts';
import { functionNotFound } from './returnCodes.ts';

type KoffiFunction = ReturnType<LibraryHandle['func']>;

export type CallArgument = number | bigint | Buffer | null;

export interface NvmlLibrary {
  readonly missing: readonly NvmlFunction[];
  has(name: NvmlFunction): boolean;
  /** @returns the library's return code; `FUNCTION_NOT_FOUND` where it does not have the function */
  call(name: NvmlFunction, args: readonly CallArgument[]): number;
  /** The same on another thread. The buffers must live until it has answered. */
  callAside(name: NvmlFunction, ...args: readonly CallArgument[]): Promise<number>;
  /** Notes which card the next calls are about. */
  setCard(index: number): void;
  /** Notes that no call is under way. */
  setIdle(): void;
}

/** @throws {Error} when it cannot be loaded; what is missing in it is no error */
export function openLibrary(nameOrPath: string, trace: Int32Array): NvmlLibrary {
  const handle = koffi.load(nameOrPath);
  const functions = new Map<NvmlFunction, { readonly number: number; readonly run: KoffiFunction }>();
  const missing: NvmlFunction[] = [];
  for (const [number, name] of functionNames.entries()) {
    try {
      functions.set(name, { number, run: handle.func(name, 'int', [...nvmlFunctions[name]]) });
    } catch {
      missing.push(name);
    }
  }
  return {
    missing,
    has: (name) => functions.has(name),
    call(name, args) {
      const found = functions.get(name);
      if (found === undefined) return functionNotFound;
      trace[tracePage.call] = found.number;
      return found.run(...args) as number;
    },
    callAside(name, ...args) {
      const found = functions.get(name);
      if (found === undefined) return Promise.resolve(functionNotFound);
      return new Promise((resolve, reject) => {
        found.run.async(...args, (error: unknown, code: number) => {
          if (error == null) resolve(code);
          else reject(new Error(`${name} could not be called`, { cause: error }));
        });
      });
    },
    setCard(index) {
      trace[tracePage.card] = index;
    },
    setIdle() {
      trace[tracePage.card] = none;
      trace[tracePage.call] = none;
    },
  };
}

/** What the reader needs of the kernel and Node does not offer. */
export interface KernelHelp {
  /** Has this process killed as soon as the one that started it is gone, even while it hangs in the library. */
  dieWithParent(): void;
  /** @returns null where the kernel refuses: then it is not known where a hanging reader stood */
  tracePage(): { readonly fd: number; readonly page: Int32Array } | null;
}

export function kernelHelp(): KernelHelp {
  const libc = koffi.load(null);
  return {
    dieWithParent() {
      const setParentDeathSignal = 1;
      const sigkill = 9;
      libc.func('prctl', 'int', ['int', 'unsigned long'])(setParentDeathSignal, sigkill);
    },
    tracePage() {
      try {
        const fd = libc.func('memfd_create', 'int', ['str', 'unsigned int'])('nvml-trace', 0) as number;
        if (fd < 0 || libc.func('ftruncate', 'int', ['int', 'int64_t'])(fd, tracePage.bytes) !== 0)
          return null;
        const readAndWrite = 3;
        const shared = 1;
        const mmap = libc.func('mmap', 'void *', ['uintptr_t', 'size_t', 'int', 'int', 'int', 'int64_t']);
        const address = mmap(0, tracePage.bytes, readAndWrite, shared, fd, 0) as unknown;
        // All ones: MAP_FAILED.
        if (address === null || address === 2n ** 64n - 1n) return null;
        return { fd, page: new Int32Array(koffi.view(address, tracePage.bytes)) };
      } catch {
        return null;
      }
    },
  };
}
