/** Phases of a job in words, for the command line, explanations and the status page. Pure. */
import type { PhasesView, PhaseView } from './phases.ts';

/** `phase curated (2 of 4), 28.7 % of all phases` */
export function phaseInShort({ index, phases, percent }: PhasesView): string {
  const { name = '' } = phases[index] ?? {};
  return `phase ${name} (${index + 1} of ${phases.length}), ${percent} % of all phases`;
}

/** One line for each phase: `1. broad: ended at step 1000 of 0-1000, met (eval_loss 3.102)`. */
export function phaseLines({ phases, unit }: PhasesView): readonly string[] {
  return phases.map((phase, index) => `${index + 1}. ${phase.name}: ${lineOf(phase, unit)}`);
}

function lineOf(phase: PhaseView, unit: PhasesView['unit']): string {
  const { state, start, target, extensions, step, tokens } = phase;
  const range = `${unit} ${start}-${start + target}`;
  const added = extensions === 0 ? '' : `, extended ${extensions === 1 ? 'once' : `${extensions} times`}`;
  const atStep = step === null ? '' : `, step ${step}`;
  const at = unit === 'steps' || tokens === null ? atStep : `${atStep}, ${tokens} tokens`;
  switch (state) {
    case 'waiting':
      return `waiting, ${range}`;
    case 'current':
      return `current${at}, ${range}${added}`;
    case 'judged':
      return `being judged${at}, ${range}${added}`;
    case 'ended':
      return `ended${at}, ${range}${added}${verdictText(phase)}`;
    default: {
      const never: never = state;
      return never;
    }
  }
}

function verdictText({ verdict, values }: PhaseView): string {
  if (verdict === null) return '';
  const known = Object.entries(values).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`);
  return `, ${verdict === 'unknown' ? 'criterion unknown' : verdict}${known.length === 0 ? '' : ` (${known.join(', ')})`}`;
}
