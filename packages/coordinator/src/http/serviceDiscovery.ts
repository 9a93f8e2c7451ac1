/**
 * What Prometheus' `http_sd_configs` reads: the coordinator and every node. Agents listen on loopback only and may be
 * behind NAT, so each is scraped through the coordinator, under a path of its own.
 */
export interface TargetGroup {
  readonly targets: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * @param address `host:port` under which whoever asks reaches the coordinator
 * @param nodes silent ones too: Prometheus is to see that they are down
 */
export function targetGroups(address: string, nodes: readonly string[]): readonly TargetGroup[] {
  return [
    { targets: [address], labels: { __metrics_path__: '/metrics', muster_role: 'coordinator' } },
    ...nodes.map((node) => ({
      targets: [address],
      labels: {
        __metrics_path__: nodeMetricsPath(node),
        // Else every node would be the same instance: the coordinator.
        instance: node,
        node,
        muster_role: 'agent',
      },
    })),
  ];
}

function nodeMetricsPath(node: string): string {
  return `/nodes/${node}/metrics`;
}

/** @returns the node that a path asks for; null when it is no such path */
export function nodeOfPath(path: string): string | null {
  return /^\/nodes\/([^/]{1,63})\/metrics$/.exec(path)?.[1] ?? null;
}
