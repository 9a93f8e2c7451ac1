/** Turns the library's answers into what Muster shows of a machine. Pure. Excludes serial numbers: they identify an owner. */
import type { MachineFacts } from '@muster/common/hardware';

/** What is used of the library's answers. Any of it may be missing or made up. */
export interface MachineAnswers {
  readonly machine: { readonly manufacturer: string; readonly model: string };
  readonly board: { readonly manufacturer: string; readonly model: string };
  readonly firmware: { readonly vendor: string; readonly version: string; readonly releaseDate: string };
  readonly disks: readonly {
    readonly vendor: string;
    readonly name: string;
    readonly type: string;
    readonly size: number | null;
  }[];
  readonly memory: readonly {
    readonly size: number;
    readonly type: string;
    readonly clockSpeed: number | null;
    readonly manufacturer?: string | undefined;
    readonly partNum: string;
  }[];
}

const textLengthMax = 100;
const disksMax = 64;
const modulesMax = 128;

/** What manufacturers and hypervisors write in place of a value, and what the library returns inside a container. */
const meaningless = new RegExp(
  `^(?:${[
    '',
    '-',
    '0+',
    'none',
    'n/?a',
    'unknown',
    'unspecified',
    'undefined',
    'default string',
    'not (?:available|specified|provided)',
    String.raw`to be filled by o\.?e\.?m\.?`,
    'system (?:product name|manufacturer|version)',
    'docker container',
  ].join('|')})$`,
  'i',
);

export function machineFactsOf({ machine, board, firmware, disks, memory }: MachineAnswers): MachineFacts {
  return {
    model: joined(machine.manufacturer, machine.model),
    board: joined(board.manufacturer, board.model),
    bios: joined(firmware.vendor, firmware.version, firmware.releaseDate),
    disks: disks.slice(0, disksMax).flatMap(({ vendor, name, type, size }) => {
      const model = joined(vendor, name);
      return model === null ? [] : [{ model, type: text(type) ?? '', sizeBytes: amount(size) }];
    }),
    // Without the right to read the tables of the firmware there is one module of all the memory and of no type.
    memoryModules: memory
      .slice(0, modulesMax)
      .flatMap(({ size, type, clockSpeed, manufacturer, partNum }) => {
        const kind = text(type);
        const sizeBytes = amount(size);
        if (kind === null || sizeBytes === null) return [];
        return [
          {
            sizeBytes,
            type: kind,
            clockMhz: amount(clockSpeed),
            model: joined(manufacturer ?? '', partNum) ?? '',
          },
        ];
      }),
  };
}

/** A maker's name that the model begins with is not repeated. */
function joined(...parts: readonly string[]): string | null {
  const texts = parts.flatMap((part) => text(part) ?? []);
  const [first, second] = texts;
  const words =
    first !== undefined && second?.toLowerCase().startsWith(first.toLowerCase()) === true
      ? texts.slice(1)
      : texts;
  return words.length === 0 ? null : words.join(' ').slice(0, textLengthMax);
}

function text(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const plain = value
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
    .trim()
    .slice(0, textLengthMax);
  return meaningless.test(plain) ? null : plain;
}

function amount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}
