/** What is remembered of one card between samples: the last dear values, counters for rates, samples of GPM. */
import {
  emptyActivity,
  emptySample,
  type GpuActivity,
  type GpuProcess,
  type GpuSample,
} from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import type { Device, NvmlCard } from './enumerate.ts';
import { CounterRate, FieldBatch } from './fieldValues.ts';
import { GpmMeter, supportsGpm } from './gpm.ts';
import {
  type ProcessReader,
  readMemory,
  readNvlinkErrors,
  readQuickValues,
  readSlowValues,
} from './readValues.ts';
import { graver, type NvmlFailure } from './returnCodes.ts';

export interface MeterOptions {
  readonly gpm: boolean;
  /** Memory that the GPM meters of all cards share. */
  readonly gpmQuery: Buffer;
  readonly processes: ProcessReader;
  /** Numbers of the NVLinks in use. */
  readonly links: readonly number[];
}

export interface CardReading {
  /** One per device; none when the card went away. */
  readonly samples: readonly GpuSample[];
  /** The gravest thing that somebody has to know. */
  readonly failure: NvmlFailure | null;
}

/** An unknown error may pass: only so many readings in a row are reported. */
const unexplainedMax = 3;

class FailureFilter {
  private unexplained = 0;

  pass(failure: NvmlFailure | null): NvmlFailure | null {
    this.unexplained = failure?.kind === 'unknown_error' ? this.unexplained + 1 : 0;
    return this.unexplained > 0 && this.unexplained < unexplainedMax ? null : failure;
  }
}

const kibibyte = 1024;

export class CardMeter {
  readonly card: NvmlCard;
  readonly hasGpm: boolean;
  private readonly options: MeterOptions;
  private readonly batch: FieldBatch;
  private readonly gpm = new Map<Device, GpmMeter>();
  private readonly processes = new Map<Device, readonly GpuProcess[] | null>();
  private readonly rates = {
    pcieTxBytes: new CounterRate(),
    pcieRxBytes: new CounterRate(),
    nvlinkTxBytes: new CounterRate(),
    nvlinkRxBytes: new CounterRate(),
  };
  private slow: ReturnType<typeof readSlowValues> | null = null;
  private slowTurns = 0;
  private readonly quickFailures = new FailureFilter();
  private readonly slowFailures = new FailureFilter();
  /** Of the last time that the dear values were read; holds until they are read again. */
  private slowFailure: NvmlFailure | null = null;

  constructor(calls: Calls, card: NvmlCard, options: MeterOptions) {
    this.card = card;
    this.options = options;
    calls.begin(card.index);
    this.hasGpm = options.gpm && supportsGpm(calls, card.handle);
    if (this.hasGpm) this.openGpm(calls);
    // GPM measures the buses too, and better: the counters cost a fraction of a millisecond each.
    this.batch = new FieldBatch(
      this.hasGpm
        ? ['memoryTemperature', 'recoveryAction']
        : ['memoryTemperature', 'recoveryAction', 'pcieTx', 'pcieRx', 'nvlinkTx', 'nvlinkRx'],
    );
  }

  private openGpm(calls: Calls): void {
    const { handle, devices } = this.card;
    for (const device of devices) {
      const target = { handle, gpuInstanceId: device.gpu.mig?.gpuInstanceId ?? null };
      const meter = GpmMeter.open(calls, target, this.options.gpmQuery);
      if (meter !== null) this.gpm.set(device, meter);
    }
  }

  /** Whether this meter, with all that it remembers, can serve a card as it was just found. */
  fits(card: NvmlCard, links: readonly number[]): boolean {
    const keyOf = ({ handle, uuid, devices }: NvmlCard) =>
      [handle, uuid, ...devices.map((device) => `${device.handle} ${device.gpu.uuid}`)].join();
    return keyOf(card) === keyOf(this.card) && links.join() === this.options.links.join();
  }

  close(calls: Calls): void {
    for (const meter of this.gpm.values()) meter.close(calls);
  }

  /** @param isTurn reads the expensive values again instead of returning the last ones */
  read(calls: Calls, nowMs: number, isTurn: boolean): CardReading {
    const { handle, devices, isMig, index } = this.card;
    calls.begin(index);
    this.batch.read(calls, handle);
    const quick = readQuickValues(calls, handle, this.batch);
    const buses = this.hasGpm || isMig ? null : this.readBuses();
    const readings = devices.map((device) => ({
      device,
      memory: readMemory(calls, device.handle),
      activity: this.gpm.get(device)?.read(calls, nowMs) ?? buses,
    }));
    let failure = this.quickFailures.pass(calls.failure);
    if ((isTurn || this.slow === null) && !calls.isOver) {
      calls.begin(index);
      this.readSlow(calls);
      this.slowFailure = this.slowFailures.pass(calls.failure);
    }
    if (this.slowFailure !== null) failure = graver(failure, this.slowFailure);
    // Half a sample of a card that went away meanwhile would pass for a whole one.
    if (calls.isOver) return { samples: [], failure };
    const samples = readings.map(({ device, memory, activity }) => {
      const sample: GpuSample = {
        ...emptySample(device.gpu.uuid),
        ...quick,
        ...this.slow,
        ...memory,
        activity,
        processes: this.processes.get(device) ?? null,
      };
      return isMig ? withoutSharedPower(sample) : sample;
    });
    return { samples, failure };
  }

  private readSlow(calls: Calls): void {
    const { handle, devices } = this.card;
    const { processes, links } = this.options;
    const before = this.slow?.nvlinkErrors ?? null;
    const nvlinkErrors = readNvlinkErrors(calls, handle, links, before, this.slowTurns);
    this.slowTurns += 1;
    this.slow = readSlowValues(calls, handle, nvlinkErrors);
    for (const device of devices) this.processes.set(device, processes.read(calls, device.handle));
  }

  private readBuses(): GpuActivity | null {
    const batch = this.batch;
    const rates = this.rates;
    const rate = (meter: CounterRate, name: Parameters<FieldBatch['counter']>[0], unit: number) => {
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
