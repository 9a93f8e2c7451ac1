/** Calls about one card at a time: what is absent becomes null, what went wrong is remembered. */
import type { NvmlFunction } from './functions.ts';
import type { CallArgument, NvmlLibrary } from './library.ts';
import { endsReading, graver, type NvmlFailure, problemKindOf, success } from './returnCodes.ts';
import { readPointer, readString, u32Of, u64Of } from './structs.ts';

export class Calls {
  readonly library: NvmlLibrary;
  /** Where single values are put; every call overwrites what the one before it left there. */
  readonly out = Buffer.alloc(128);
  /** The same memory: reading an element costs a tenth of a Buffer's method in code that is never compiled. */
  private readonly words = new Uint32Array(this.out.buffer, this.out.byteOffset, 2);
  /** For values that nobody asks for. */
  readonly ignored = Buffer.alloc(8);
  private gravestFailure: NvmlFailure | null = null;
  private hasEnded = false;

  constructor(library: NvmlLibrary) {
    this.library = library;
  }

  /** From here on, calls are about this card. */
  begin(cardIndex: number): void {
    this.library.setCard(cardIndex);
    this.gravestFailure = null;
    this.hasEnded = false;
  }

  /** The gravest since `begin`. */
  get failure(): NvmlFailure | null {
    return this.gravestFailure;
  }

  /** This card gives no further values; calls for it no longer reach the library. */
  get isOver(): boolean {
    return this.hasEnded;
  }

  /** @returns the return code; one that means trouble is remembered. null: not called, because the card is gone */
  code(name: NvmlFunction, ...args: readonly CallArgument[]): number | null {
    if (this.hasEnded) return null;
    const code = this.library.call(name, args);
    if (code === success) return code;
    const kind = problemKindOf(code);
    if (kind !== null) {
      this.gravestFailure = graver(this.gravestFailure, { kind, code, call: name });
      this.hasEnded = endsReading(kind);
    }
    return code;
  }

  /** Whether it succeeded. */
  run(name: NvmlFunction, ...args: readonly CallArgument[]): boolean {
    return this.code(name, ...args) === success;
  }

  /** For functions whose last parameter is where the value goes; so are the following. */
  u32(name: NvmlFunction, ...args: CallArgument[]): number | null {
    args.push(this.out);
    return this.code(name, ...args) === success ? u32Of(this.words[0]) : null;
  }

  u64(name: NvmlFunction, ...args: CallArgument[]): number | null {
    args.push(this.out);
    return this.code(name, ...args) === success ? u64Of(this.words[1], this.words[0]) : null;
  }

  pointer(name: NvmlFunction, ...args: CallArgument[]): number | null {
    args.push(this.out);
    if (this.code(name, ...args) !== success) return null;
    const pointer = readPointer(this.out, 0);
    return pointer === 0 ? null : pointer;
  }

  /** @returns null for an empty one */
  string(name: NvmlFunction, handle: number, size: number): string | null {
    if (!this.run(name, handle, this.out, size)) return null;
    return readString(this.out, 0, size) || null;
  }
}
