/** All formats. A line belongs to the first that can read it: those that take the most lines come last. */
import type { LineFormat } from './format.ts';
import { deepspeed } from './formats/deepspeed.ts';
import { fairseq } from './formats/fairseq.ts';
import { hfTrainer } from './formats/hfTrainer.ts';
import { jsonLines } from './formats/jsonLines.ts';
import { lightning } from './formats/lightning.ts';
import { litgpt } from './formats/litgpt.ts';
import { maxtext } from './formats/maxtext.ts';
import { megatron } from './formats/megatron.ts';
import { moddedNanogpt } from './formats/moddedNanogpt.ts';
import { nanogpt } from './formats/nanogpt.ts';
import { nanotron } from './formats/nanotron.ts';
import { plain } from './formats/plain.ts';
import { torchtitan } from './formats/torchtitan.ts';
import { torchtune } from './formats/torchtune.ts';
import { verl } from './formats/verl.ts';

export const lineFormats: readonly LineFormat[] = [
  nanogpt,
  litgpt,
  megatron,
  torchtitan,
  torchtune,
  hfTrainer,
  lightning,
  deepspeed,
  maxtext,
  nanotron,
  moddedNanogpt,
  verl,
  plain,
  fairseq,
  jsonLines,
];
