import { alertSeverities } from '@muster/common/alerts';
import { builtInAlerts, isBuiltInAlert } from '@muster/common/builtInAlerts';
import { Counter, type Registry } from 'prom-client';
import type { DeliveryResult, SinkKind } from '../alertSinks/sink.ts';
import type { ClusterState } from '../state/state.ts';
import { addGauge } from './register.ts';

export interface AlertMetricParts {
  readonly state: Pick<ClusterState, 'alerts'>;
}

/** @returns counts a delivery */
export function addAlertMetrics(
  registry: Registry,
  { state: { alerts } }: AlertMetricParts,
): (sink: SinkKind, result: DeliveryResult) => void {
  addGauge(registry, {
    name: 'muster_alerts_firing',
    help: 'Jobs, nodes and the cluster for which alerts fire now, by severity.',
    labelNames: ['severity'],
    read: () => {
      const severityOf = (name: string) =>
        alerts.rules.get(name)?.severity ?? (isBuiltInAlert(name) ? builtInAlerts[name].severity : 'info');
      const firing = [...alerts.episodes.values()].map(({ alert }) => severityOf(alert));
      return alertSeverities.map((severity) => [
        { severity },
        firing.filter((each) => each === severity).length,
      ]);
    },
  });
  const deliveries = new Counter({
    name: 'muster_alert_deliveries_total',
    help: 'Notifications of alerts since the coordinator started, by sink: delivered, failed and to be tried again, or given up.',
    labelNames: ['sink', 'result'],
    registers: [registry],
  });
  return (sink, result) => deliveries.inc({ sink, result });
}
