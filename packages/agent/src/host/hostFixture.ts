/** A machine for tests: the parts of /proc and /sys that the host readers look at, in a folder of its own. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export class HostTree {
  readonly root = mkdtempSync(join(tmpdir(), 'muster-host-'));

  /** @param path below the root */
  file(path: string, text: string): this {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
    return this;
  }

  folder(path: string): this {
    mkdirSync(join(this.root, path), { recursive: true });
    return this;
  }

  /** @param target below the root too */
  link(path: string, target: string): this {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    symlinkSync(join(this.root, target), join(this.root, path));
    return this;
  }

  /** @param way from the host bridge down: `pci0000:17/0000:17:01.0/0000:18:00.0` */
  pciDevice(pciPath: string, numaNode = -1): this {
    const address = pciPath.slice(pciPath.lastIndexOf('/') + 1);
    return this.file(`sys/devices/${pciPath}/numa_node`, `${numaNode}\n`).link(
      `sys/bus/pci/devices/${address}`,
      `sys/devices/${pciPath}`,
    );
  }

  /**
   * A network interface. Attributes are files of its folder.
   * @param way of its PCI device, which must be there; null: nothing is behind it
   */
  nic(name: string, pciPath: string | null, attributes: Readonly<Record<string, string>>): this {
    for (const [attribute, text] of Object.entries({ operstate: 'up', ...attributes })) {
      this.file(`sys/class/net/${name}/${attribute}`, `${text}\n`);
    }
    if (pciPath === null) return this;
    return this.link(`sys/class/net/${name}/device`, `sys/devices/${pciPath}`).folder(
      `sys/devices/${pciPath}/net/${name}`,
    );
  }

  /** `upper` is made of `lower`. */
  stacked(upper: string, lower: string): this {
    return this.link(`sys/class/net/${upper}/lower_${lower}`, `sys/class/net/${lower}`);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
