/** Compares machines by what their agents tell of them. Pure. */
import type { MachineOrigin } from '../model.ts';

/**
 * True if the firmware's UUID is the same and at least one network card is, as far as both agents tell them. Null if there
 * is nothing that both tell.
 */
export function isSameMachine(a: MachineOrigin, b: MachineOrigin): boolean | null {
  const firmware =
    a.firmwareUuid === null || b.firmwareUuid === null ? null : a.firmwareUuid === b.firmwareUuid;
  const cards =
    a.cardAddresses.length === 0 || b.cardAddresses.length === 0
      ? null
      : a.cardAddresses.some((each) => b.cardAddresses.includes(each));
  if (firmware === false || cards === false) return false;
  return firmware ?? cards;
}
