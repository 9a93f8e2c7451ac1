/** Two ways to write where a PCI device is: the driver's `00000000:1b:00.0`, which is ours, and sysfs's `0000:1b:00.0`. */

const address = /^([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/i;

/** @returns null: that is not the address of a PCI device */
export function toPciBusId(text: string): string | null {
  const [, domain, bus, slot, part] = address.exec(text) ?? [];
  if (domain === undefined) return null;
  return `${domain.padStart(8, '0')}:${bus}:${slot}.${part}`.toLowerCase();
}

/** As sysfs names the device: four digits of domain, more only where the number needs them. */
export function toSysfsAddress(pciBusId: string): string | null {
  const whole = toPciBusId(pciBusId);
  return whole === null ? null : whole.replace(/^0{1,4}/, '');
}

/** Of the device itself, or of the one that carries it: virtio and USB devices sit below a PCI device. */
export function pciBusIdInPath(devicePath: string): string | null {
  for (const part of devicePath.split('/').reverse()) {
    const pciBusId = toPciBusId(part);
    if (pciBusId !== null) return pciBusId;
  }
  return null;
}
