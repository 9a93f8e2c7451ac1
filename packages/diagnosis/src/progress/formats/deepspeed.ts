/** What DeepSpeed's engine says of its own accord: never a loss, which is the program's to print. */
import { type LineFormat, numberOrNull } from '../format.ts';

const step = /\bstep=(\d{1,15}), skipped=(\d{1,15}), lr=\[([-+.\w]{1,40})/;
const speed =
  /\bglobal_step=(\d{1,15}), RunningAvgSamplesPerSec=[-+.\w]{1,40}, CurrSamplesPerSec=([-+.\w]{1,40})/;
/** Before 0.7: `0/100, SamplesPerSec=12.5`. */
const oldSpeed =
  /\b\d{1,15}\/(\d{1,15}), (?:RunningAvgSamplesPerSec=[-+.\w]{1,40}, Curr)?SamplesPerSec=([-+.\w]{1,40})/;
const memory = /\bMemAllocated=([.\d]{1,20})GB, MaxMemAllocated=([.\d]{1,20})GB/;

export const deepspeed: LineFormat = {
  framework: 'deepspeed',
  marks: [', skipped=', '/global_step=', 'SamplesPerSec='],
  read(text) {
    const stepped = step.exec(text);
    if (stepped !== null) {
      // What the engine says when it is made: nothing has been trained.
      if (Number(stepped[1]) === 0) return null;
      return {
        step: Number(stepped[1]),
        skipped: Number(stepped[2]),
        learning_rate: numberOrNull(stepped[3]),
      };
    }
    const timed = speed.exec(text) ?? oldSpeed.exec(text);
    if (timed === null) return null;
    const allocated = memory.exec(text);
    return {
      step: Number(timed[1]),
      samples_per_s: numberOrNull(timed[2]),
      ...(allocated !== null && {
        memory_gb: numberOrNull(allocated[1]),
        max_memory_gb: numberOrNull(allocated[2]),
      }),
    };
  },
};
