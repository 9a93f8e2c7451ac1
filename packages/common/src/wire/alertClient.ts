/** The part of the typed client that is about alerts. */
import type { AlertScope, AlertSeverity, AlertView } from '../alerts.ts';
import { MusterError } from '../errors.ts';
import { alertFromWire } from './codec.ts';
import type { UnaryCall } from './unaryCalls.ts';

/** The coordinator chooses what is absent: see `CreateAlertRequest`. */
export interface AlertRequest {
  readonly name: string;
  readonly condition: string;
  readonly severity?: AlertSeverity;
  readonly message?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly forMs?: number;
  readonly repeatMs?: number;
  /** `jobId` may be whatever names a job. */
  readonly scope?: AlertScope;
  /** Everything is checked, and nothing set. */
  readonly dryRun?: boolean;
}

export interface AlertApi {
  createAlert(request: AlertRequest): Promise<AlertView>;
  /** By name, those that are built in last. */
  listAlerts(query?: { readonly name?: string; readonly firing?: boolean }): Promise<readonly AlertView[]>;
  /** @returns what was deleted */
  deleteAlert(name: string): Promise<AlertView>;
  /** @param forMs from now on; 0 ends the silence */
  silenceAlert(name: string, forMs: number, reason: string): Promise<AlertView>;
  /** @param subject a job's id, a node's name or `cluster`; null: whatever fires */
  acknowledgeAlert(name: string, subject: string | null): Promise<AlertView>;
}

export function alertClient(call: UnaryCall): AlertApi {
  const read = (wire: Parameters<typeof alertFromWire>[0]): AlertView => {
    const alert = alertFromWire(wire);
    if (alert !== null) return alert;
    throw new MusterError('internal', 'the coordinator answered with an alert without a scope');
  };
  return {
    createAlert: async ({ scope, ...request }) => {
      const { jobId = null, project = null, ...rest } = scope ?? {};
      const sent = {
        ...rest,
        nodes: [...(scope?.nodes ?? [])],
        ...(jobId === null ? {} : { jobId }),
        ...(project === null ? {} : { project }),
      };
      return read(await call('CreateAlert', { ...request, ...(scope === undefined ? {} : { scope: sent }) }));
    },
    listAlerts: async (query = {}) => (await call('ListAlerts', query)).alerts.map(read),
    deleteAlert: async (name) => read(await call('DeleteAlert', { name })),
    silenceAlert: async (name, forMs, reason) => read(await call('SilenceAlert', { name, forMs, reason })),
    acknowledgeAlert: async (name, subject) =>
      read(await call('AcknowledgeAlert', { name, ...(subject === null ? {} : { subject }) })),
  };
}
