/** What is remembered of one card between samples: the last dear values, counters for rates, samples of GPM. */
import {
  emptyActivity,
  emptySample,
  type GpuActivity,
  type GpuProcess,
  type GpuSample,
} from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import type { Card, Device } from './enumerate.ts';
import { FieldBatch, Rate } from './fieldValues.ts';
import { GpmMeter, supportsGpm } from './gpm.ts';
import {
  type ProcessReader,
  readMemory,
  readQuickValues,
  readSlowValues,
  type SlowValues,
} from './readValues.ts';

export interface MeterOptions {
  readonly gpm: boolean;
  /** Memory that the GPM meters of all cards share. */
  readonly gpmQuery: Buffer;
  readonly processes: ProcessReader;
  /** Numbers of the NVLinks in use. */
  readonly links: readonly number[];
}

const kibibyte = 1024;

export class CardMeter {
  readonly card: Card;
  readonly hasGpm: boolean;
  /** Samples in a row in which a call failed without saying why. */
  unexplainedFailures = 0;
  readonly #options: MeterOptions;
  readonly #batch: FieldBatch;
  readonly #gpm = new Map<Device, GpmMeter>();
  readonly #processes = new Map<Device, readonly GpuProcess[] | null>();
  readonly #rates = {
    pcieTxBytes: new Rate(),
    pcieRxBytes: new Rate(),
    nvlinkTxBytes: new Rate(),
    nvlinkRxBytes: new Rate(),
  };
  #slow: SlowValues | null = null;

  constructor(calls: Calls, card: Card, options: MeterOptions) {
    this.card = card;
    this.#options = options;
    calls.begin(card.index);
    this.hasGpm = options.gpm && supportsGpm(calls, card.handle);
    if (this.hasGpm) this.#openGpm(calls);
    // GPM measures the buses too, and better: the counters cost a fraction of a millisecond each.
    this.#batch = new FieldBatch(
      this.hasGpm
        ? ['memoryTemperature', 'recoveryAction']
        : ['memoryTemperature', 'recoveryAction', 'pcieTx', 'pcieRx', 'nvlinkTx', 'nvlinkRx'],
    );
  }

  #openGpm(calls: Calls): void {
    const { handle, devices } = this.card;
    for (const device of devices) {
      const target = { handle, gpuInstanceId: device.gpu.mig?.gpuInstanceId ?? null };
      const meter = GpmMeter.open(calls, target, this.#options.gpmQuery);
      if (meter !== null) this.#gpm.set(device, meter);
    }
  }

  /**
   * @param withSlow reads the dear values anew instead of giving the last ones
   * @returns one sample per device; what went wrong is in `calls.failure`
   */
  read(calls: Calls, nowMs: number, withSlow: boolean): readonly GpuSample[] {
    const { handle, devices, isMig } = this.card;
    const { processes, links } = this.#options;
    this.#batch.read(calls, handle);
    const quick = readQuickValues(calls, handle, this.#batch);
    if (withSlow || this.#slow === null) {
      this.#slow = readSlowValues(calls, handle, links);
      for (const device of devices) this.#processes.set(device, processes.read(calls, device.handle));
    }
    const buses = this.hasGpm || isMig ? null : this.#readBuses();
    const slow = this.#slow;
    return devices.map((device) => {
      const gpm = this.#gpm.get(device)?.read(calls, nowMs) ?? null;
      const sample: GpuSample = {
        ...emptySample(device.gpu.uuid),
        ...quick,
        ...slow,
        ...readMemory(calls, device.handle),
        activity: gpm ?? buses,
        processes: this.#processes.get(device) ?? null,
      };
      return isMig ? withoutSharedPower(sample) : sample;
    });
  }

  #readBuses(): GpuActivity | null {
    const batch = this.#batch;
    const rates = this.#rates;
    const rate = (meter: Rate, name: Parameters<FieldBatch['counter']>[0], unit: number) => {
      const perSecond = meter.of(batch.counter(name));
      return perSecond === null ? null : Math.round(perSecond * unit);
    };
    const buses = {
      pcieTxBytes: rate(rates.pcieTxBytes, 'pcieTx', 1),
      pcieRxBytes: rate(rates.pcieRxBytes, 'pcieRx', 1),
      nvlinkTxBytes: rate(rates.nvlinkTxBytes, 'nvlinkTx', kibibyte),
      nvlinkRxBytes: rate(rates.nvlinkRxBytes, 'nvlinkRx', kibibyte),
    };
    const isEmpty = Object.values(buses).every((value) => value === null);
    return isEmpty ? null : { ...emptyActivity, ...buses };
  }
}

/** The card's power is not the instance's: added up over the instances it would be counted several times. */
function withoutSharedPower(sample: GpuSample): GpuSample {
  return { ...sample, powerWatts: null, powerLimitWatts: null, energyMillijoules: null };
}
