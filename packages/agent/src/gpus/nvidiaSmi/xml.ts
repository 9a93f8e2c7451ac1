/**
 * `nvidia-smi -q -x`: what the cards are. Its document type has changed four times, and follows the program rather than
 * the driver, so elements are looked up by name wherever a generation had them. An element can also be a mere text
 * (`N/A`, `GPU is lost`) where it has children on other cards.
 */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { GpuProblem } from '../gpuSource.ts';
import {
  type CellFault,
  faultOf,
  readAmount,
  readCount,
  readFlag,
  readPciBusId,
  readText,
  readUuid,
} from './cells.ts';
import { cardProblem } from './nvidiaSmi.ts';

export interface SmiLog {
  readonly driverVersion: string | null;
  readonly cudaVersion: string | null;
  /** Cards that the driver counts; more than `cards` when some have dropped out of the document. */
  readonly attachedGpus: number | null;
  readonly cards: readonly XmlCard[];
}

export interface XmlCard {
  readonly uuid: string | null;
  readonly pciBusId: string | null;
  readonly model: string;
  readonly memoryMb: number | null;
  readonly serial: string | null;
  /** Some sensors of a virtual GPU read 0 where there is nothing to read. */
  readonly isVgpuGuest: boolean;
  readonly migEnabled: boolean;
  readonly migDevices: readonly XmlMigDevice[];
  readonly element: XmlElement;
}

export interface XmlMigDevice {
  /** Among the instances of the card. */
  readonly index: number;
  readonly gpuInstanceId: number;
  readonly computeInstanceId: number;
  /** null: this version leaves it out; `-L` has it. */
  readonly uuid: string | null;
  readonly memoryMb: number | null;
  readonly element: XmlElement;
}

export type XmlElement = Readonly<Record<string, unknown>>;

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  // The text of a value is judged by cells.ts: `0x1B`, `00` and `1e5` are no numbers here.
  parseTagValue: false,
  parseAttributeValue: false,
  // Nothing of ours has entities, and expanding them is how a small document becomes a large one.
  processEntities: false,
  isArray: (name) => name === 'gpu' || name === 'mig_device' || name === 'process_info',
  // Most of the document, and of no use here.
  stopNodes: ['*.supported_clocks'],
});

const documentEnd = '</nvidia_smi_log>';

/** Behind the document nvidia-smi prints warnings, such as of a corrupted infoROM. null: no document, or a truncated one. */
export function parseSmiXml(output: string): SmiLog | null {
  const end = output.indexOf(documentEnd);
  if (!output.trimStart().startsWith('<') || end < 0) return null;
  const text = output.slice(0, end + documentEnd.length);
  let document: unknown;
  try {
    if (XMLValidator.validate(text) !== true) return null;
    document = parser.parse(text);
  } catch {
    // Thrown for what the parser regards as an attack: nesting without end, names such as __proto__.
    return null;
  }
  const log = isElement(document) ? elementAt(document, 'nvidia_smi_log') : null;
  if (log === null) return null;
  return {
    driverVersion: readText(textAt(log, 'driver_version')),
    cudaVersion: /^\d{1,3}\.\d{1,3}$/.exec(textAt(log, 'cuda_version') ?? '')?.[0] ?? null,
    attachedGpus: readCount(textAt(log, 'attached_gpus')),
    cards: elementsAt(log, 'gpu').map(readCard),
  };
}

function readCard(card: XmlElement): XmlCard {
  return {
    uuid: readUuid(textAt(card, 'uuid')),
    pciBusId: readPciBusId(textAt(card, 'pci', 'pci_bus_id') ?? textAt(card, '@id')),
    model: readText(textAt(card, 'product_name')) ?? '',
    memoryMb: readAmount(textAt(card, 'fb_memory_usage', 'total')),
    serial: readText(textAt(card, 'serial')),
    isVgpuGuest: textAt(card, 'gpu_virtualization_mode', 'virtualization_mode') === 'VGPU',
    migEnabled: textAt(card, 'mig_mode', 'current_mig') === 'Enabled',
    migDevices: elementsAt(card, 'mig_devices', 'mig_device').flatMap(readMigDevice),
    element: card,
  };
}

function readMigDevice(device: XmlElement): readonly XmlMigDevice[] {
  const index = readCount(textAt(device, 'index'));
  const gpuInstanceId = readCount(textAt(device, 'gpu_instance_id'));
  const computeInstanceId = readCount(textAt(device, 'compute_instance_id'));
  if (index === null || gpuInstanceId === null || computeInstanceId === null) return [];
  return [
    {
      index,
      gpuInstanceId,
      computeInstanceId,
      uuid: readUuid(textAt(device, 'uuid')),
      memoryMb: readAmount(textAt(device, 'fb_memory_usage', 'total')),
      element: device,
    },
  ];
}

/** Elements whose failure means that the card cannot be read, unlike that of some setting that it merely has not. */
const sensors = [
  'fb_memory_usage',
  'utilization',
  'temperature',
  'power_readings',
  'gpu_power_readings',
  'clocks',
  'ecc_errors',
  'remapped_rows',
];

/** Faults of the card in the document, worst first. */
export function problemsOfCard(card: XmlCard): readonly GpuProblem[] {
  const sensorElements = Object.fromEntries(sensors.map((name) => [name, card.element[name]]));
  const evidence: readonly [CellFault, string | null][] = [
    ['lost', firstFault(card.element, 'lost')],
    [
      'reset_required',
      firstFault(card.element, 'reset_required') ??
        (readFlag(textAt(card.element, 'gpu_reset_status', 'reset_required')) === true
          ? 'reset_required: Yes'
          : null),
    ],
    ['unknown_error', firstFault(sensorElements, 'unknown_error')],
  ];
  return evidence.flatMap(([fault, text]) => (text === null ? [] : [cardProblem(fault, card, text)]));
}

/** `name: text` of the first element with this fault. */
function firstFault(element: XmlElement, fault: CellFault): string | null {
  for (const [name, value] of Object.entries(element)) {
    if (typeof value === 'string' && faultOf(value) === fault) return `${name}: ${value}`;
    const inner = isElement(value) ? firstFault(value, fault) : null;
    if (inner !== null) return inner;
  }
  return null;
}

export function elementAt(element: XmlElement, name: string): XmlElement | null {
  const value = element[name];
  return isElement(value) ? value : null;
}

/** null: there is no such element, or it is not a single text. */
export function textAt(element: XmlElement, ...path: readonly string[]): string | null {
  const [name, ...rest] = path;
  if (name === undefined) return null;
  const value = element[name];
  if (rest.length > 0) return isElement(value) ? textAt(value, ...rest) : null;
  return typeof value === 'string' ? value : null;
}

export function elementsAt(element: XmlElement, ...path: readonly string[]): readonly XmlElement[] {
  const [name, ...rest] = path;
  if (name === undefined) return [];
  const value = element[name];
  if (rest.length > 0) return isElement(value) ? elementsAt(value, ...rest) : [];
  return Array.isArray(value) ? value.filter(isElement) : [];
}

function isElement(value: unknown): value is XmlElement {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
