/**
 * The variables for NCCL, gloo and TensorPipe that describe the node's networks. Left alone each of them takes the first interface that it
 * likes, on some nodes docker0, and the gang hangs in its first collective.
 */
import type { Nic, RdmaDevice } from '@muster/common/hardware';
import { type NodeNetwork, networkInterfaceFor } from '../host/addresses.ts';

/**
 * @param address that the other nodes of the gang reach this one at; null: not known, the libraries choose
 * @param wanted `network` of the spec: who names one wants no other
 */
export function networkEnvironment(
  network: NodeNetwork,
  address: string | null,
  wanted: string | null,
): Readonly<Record<string, string>> {
  const active = network.rdmaDevices.filter(({ state }) => state === 'ACTIVE');
  const name = address === null ? null : networkInterfaceFor(address, network.nics);
  if (name === null) return active.length === 0 ? withoutRdma : {};
  return {
    // NCCL takes a name for a prefix unless it begins with "=": eth1 would mean eth10, too.
    NCCL_SOCKET_IFNAME: `=${name}`,
    GLOO_SOCKET_IFNAME: name,
    TP_SOCKET_IFNAME: name,
    ...rdmaEnvironment(rdmaDevicesFor(active, network.nics, name, wanted !== null)),
  };
}

const withoutRdma = { NCCL_IB_DISABLE: '1' };

function rdmaEnvironment(devices: readonly RdmaDevice[]): Readonly<Record<string, string>> {
  if (devices.length === 0) return withoutRdma;
  return { NCCL_IB_HCA: `=${devices.map(({ name, port }) => `${name}:${port}`).join(',')}` };
}

/**
 * The device behind the interface, with the others of its fabric: of a node with a rail for each GPU they are all to be
 * used. An adapter of another speed, such as that of the storage network, would slow all of them down.
 *
 * InfiniBand often has no IP address at all. Then no address leads to it, and the gang meets over another network; only
 * where InfiniBand could have been chosen and was not, or the job asked for another network, does NCCL keep off it.
 */
function rdmaDevicesFor(
  active: readonly RdmaDevice[],
  nics: readonly Nic[],
  interfaceName: string,
  isWanted: boolean,
): readonly RdmaDevice[] {
  const chosen = active.find(({ nic }) => nic === interfaceName);
  if (chosen !== undefined) {
    return active.filter((each) => each.linkLayer === chosen.linkLayer && each.rateGbps === chosen.rateGbps);
  }
  const infiniband = active.filter(({ linkLayer }) => linkLayer === 'InfiniBand');
  const hasAddress = ({ nic }: RdmaDevice) =>
    nics.some((each) => each.name === nic && each.addresses.length > 0);
  return isWanted || infiniband.some(hasAddress) ? [] : infiniband;
}
