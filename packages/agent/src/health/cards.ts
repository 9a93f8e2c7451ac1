/** From what driver and kernel name to the cards and tasks that Muster knows. Pure. */
import { cardUuid } from '@muster/common/hardware';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { GpuObservation } from '../gpus/gpuSource.ts';
import { samePci } from './kernelLines.ts';
import type { CardRecord, HealthDraft } from './state.ts';

/** Far more than fit into a machine; a driver that makes UUIDs up must not fill our memory. */
const cardsMax = 128;

/** Cards that are listed become known. Simulated ones do not: their number is an option, and nothing is lost when it falls. */
export function rememberCards(draft: HealthDraft, observation: GpuObservation): void {
  for (const gpu of observation.gpus) {
    if (gpu.simulated) continue;
    const uuid = cardUuid(gpu);
    const known = draft.cards.get(uuid);
    const card: CardRecord = {
      recovery: null,
      lastXid: null,
      ...known,
      uuid,
      pciBusId: gpu.pciBusId ?? known?.pciBusId ?? null,
      index: gpu.index ?? known?.index ?? null,
    };
    if (known !== undefined || draft.cards.size < cardsMax) draft.cards.set(uuid, card);
  }
}

/** @returns null when no card was ever seen there */
export function cardAt(cards: Iterable<CardRecord>, pciBusId: string | null): CardRecord | null {
  if (pciBusId === null) return null;
  for (const card of cards) if (card.pciBusId !== null && samePci(card.pciBusId, pciBusId)) return card;
  return null;
}

/** For messages: `GPU 3 (0000:1b:00.0)`. @param pciBusId names a card that is not known */
export function gpuName(card: CardRecord | null, pciBusId: string | null): string {
  if (card === null) return pciBusId === null ? 'the GPUs' : `the GPU at ${shortPci(pciBusId)}`;
  const place = card.pciBusId === null ? card.uuid : shortPci(card.pciBusId);
  return card.index === null ? `the GPU at ${place}` : `GPU ${card.index} (${place})`;
}

/** NVML prints eight digits of domain, the kernel and lspci four. */
function shortPci(pciBusId: string): string {
  return pciBusId.replace(/^0000(?=[0-9a-f]{4}:)/i, '');
}

/**
 * The task that events on a card are attributed to. Of a card in MIG mode: the task whose instance runs the process, or the
 * only task there is; null when it cannot be determined.
 */
export function holderOf(
  observation: GpuObservation | null,
  gpuUuid: string,
  pid: number | null,
): TaskRef | null {
  if (observation === null) return null;
  const { holders, samples } = observation;
  const devices = observation.gpus.filter((gpu) => cardUuid(gpu) === gpuUuid).map(({ uuid }) => uuid);
  const running = devices.filter(
    (uuid) => pid !== null && samples.get(uuid)?.processes?.some((process) => process.pid === pid) === true,
  );
  const suspects = (running.length > 0 ? running : [...devices, gpuUuid]).flatMap(
    (uuid) => holders.get(uuid) ?? [],
  );
  const distinct = new Map(suspects.map((task) => [taskKey(task), task]));
  const [only = null] = distinct.size === 1 ? distinct.values() : [];
  return only;
}
