/** All formats. A line belongs to the first that can read it: those that take the most lines come last. */
import type { LineFormat } from './format.ts';
import { deepspeed } from './formats/deepspeed.ts';
import { fairseq } from './formats/fairseq.ts';
import { hfTrainer } from './formats/hfTrainer.ts';
import { jsonLines } from './formats/jsonLines.ts';
import { lightning } from './formats/lightning.ts';
import { litgpt } from './formats/litgpt.ts';
import { megatron } from './formats/megatron.ts';
import { nanogpt } from './formats/nanogpt.ts';
import { torchtitan } from './formats/torchtitan.ts';
import { torchtune } from './formats/torchtune.ts';

export const lineFormats: readonly LineFormat[] = [
  nanogpt,
  litgpt,
  megatron,
  torchtitan,
  torchtune,
  hfTrainer,
  lightning,
  deepspeed,
  fairseq,
  jsonLines,
];
