/** What programs print about the checkpoints they save. */

export interface SaveMention {
  /** As printed: relative to the directory that the program runs in. null: it names none. */
  readonly path: string | null;
  /** false: the program has only announced it, so whatever stands there may still be incomplete. */
  readonly isDone: boolean;
  readonly line: number;
  /** The global rank, where the output has it. */
  readonly rank: number | null;
}

/** Without this a line mentions no save. */
export const saveMark = /[Ss]av(?:ing|ed)/;

interface Wording {
  readonly pattern: RegExp;
  readonly isDone: boolean;
}

/** The first group is the path, where the line has one. Quotation marks are taken off it. */
const wordings: readonly Wording[] = [
  // Megatron: `successfully saved checkpoint from iteration    2000 to /runs/a [ t 1/2, p 1/4 ]`
  {
    pattern: /successfully saved checkpoint (?:at|from) iteration {1,12}\d{1,12} to (\S{1,4000})/,
    isDone: true,
  },
  { pattern: /saving checkpoint at iteration {1,12}\d{1,12} to (\S{1,4000})/, isDone: false },
  // torchtune, fairseq, the engine of DeepSpeed
  { pattern: /\b[Cc]heckpoint of size [\d.]{1,20} \w{1,6} saved to (\S{1,4000})/, isDone: true },
  { pattern: /\bSaved checkpoint (?:to )?(\S{1,4000})/, isDone: true },
  { pattern: /\[Torch\] Saved (\S{1,4000}?)\.?$/, isDone: true },
  // Hugging Face, DeepSpeed, LitGPT, nanoGPT
  { pattern: /\bSaving model checkpoint(?: to|:) (\S{1,4000})/, isDone: false },
  { pattern: /\b[Ss]aving checkpoint to (\S{1,4000})/, isDone: false },
  // Lightning: `…, saving model to '/runs/a/epoch=0.ckpt' as top 1`
  { pattern: /\bsaving model to (\S{1,4000})/, isDone: false },
  // torchtitan
  { pattern: /\bFinished saving the checkpoint\b/, isDone: true },
  { pattern: /\bSaving the checkpoint\b/, isDone: false },
];

/** @returns null where the text mentions no save */
export function saveIn(text: string): Pick<SaveMention, 'path' | 'isDone'> | null {
  for (const { pattern, isDone } of wordings) {
    const found = pattern.exec(text);
    if (found === null) continue;
    const path = found[1]?.replace(/^['"`]|['"`,]+$/g, '') ?? null;
    return { path: path === '' ? null : path, isDone };
  }
  return null;
}
