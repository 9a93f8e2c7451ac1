/** Starts the sinks, and knows how far all of them have come. */
import { followedSeq, type RunningFollower } from '../events/follower.ts';
import { type AlertSink, type SinkParts, sinkCursorName, startSink } from './sink.ts';

export interface RunningSinks extends RunningFollower {
  /** Every sink has had all events up to this one. */
  deliveredSeq(): Promise<number>;
}

export function startSinks(sinks: readonly AlertSink[], parts: SinkParts): RunningSinks {
  const running = sinks.map((sink) => startSink(sink, parts));
  return {
    deliveredSeq: async () => {
      const seqs = sinks.map((sink) => followedSeq(parts.store, sinkCursorName(sink), 0));
      return Math.min(parts.lastEventSeq(), ...(await Promise.all(seqs)));
    },
    close: async () => {
      await Promise.all(running.map((each) => each.close()));
    },
  };
}
