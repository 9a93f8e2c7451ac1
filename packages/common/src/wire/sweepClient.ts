/** The part of the typed client that is about sweeps. */
import type { SweepView, TrialView } from '../sweeps.ts';
import { sweepFromWire, trialFromWire } from './codec.ts';
import type { UnaryCall } from './unaryCalls.ts';

export interface SweepApi {
  /** @param request `specJson`: the sweep file as JSON; `dryRun`: everything is checked, and nothing started */
  createSweep(request: {
    readonly specJson: string;
    readonly requestId: string;
    readonly dryRun?: boolean;
  }): Promise<SweepView>;
  /** Newest first. */
  listSweeps(query?: {
    readonly active?: boolean;
    readonly limit?: number;
  }): Promise<{ readonly sweeps: readonly SweepView[]; readonly more: boolean }>;
  /** @param sweep its id, the beginning of its id, or its name */
  getSweep(sweep: string): Promise<SweepView>;
  /** All of them, by number. */
  listTrials(sweep: string): Promise<readonly TrialView[]>;
  stopSweep(sweep: string, reason: string): Promise<SweepView>;
  /** @param trials how many more */
  extendSweep(sweep: string, trials: number, requestId: string): Promise<SweepView>;
}

export function sweepClient(call: UnaryCall): SweepApi {
  return {
    createSweep: async (request) => sweepFromWire(await call('CreateSweep', request)),
    listSweeps: async (query = {}) => {
      const { sweeps, more } = await call('ListSweeps', query);
      return { sweeps: sweeps.map(sweepFromWire), more };
    },
    getSweep: async (sweep) => sweepFromWire(await call('GetSweep', { sweep })),
    listTrials: async (sweep) => {
      const all: TrialView[] = [];
      for (;;) {
        const { trials, more } = await call('ListTrials', { sweep, fromNumber: all.length });
        all.push(...trials.map(trialFromWire));
        if (!more || trials.length === 0) return all;
      }
    },
    stopSweep: async (sweep, reason) => sweepFromWire(await call('StopSweep', { sweep, reason })),
    extendSweep: async (sweep, trials, requestId) =>
      sweepFromWire(await call('ExtendSweep', { sweep, trials, requestId })),
  };
}
