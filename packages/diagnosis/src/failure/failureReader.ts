/**
 * Finds what went wrong first in the output of a program. A program whose peer has died fails too, often louder and
 * sometimes sooner than the one that began it: of all that is noticed, beginnings stand above consequences, what is stronger
 * above what is weaker, and then the first counts (judge.ts).
 */
import type { Line } from '../model.ts';
import { collectiveRules } from './collectiveRules.ts';
import { Collectives } from './collectives.ts';
import { ExceptionReader, exceptionHints } from './exceptions.ts';
import { evidenceText, type FailureFinding, finding, withVerdict } from './finding.ts';
import { type FailureResult, judgeFailure, type ProcessEnd } from './judge.ts';
import {
  diedByItself,
  exitFinding,
  exitHints,
  type ReportedExit,
  readReportedExit,
  SummaryReader,
} from './launchers.ts';
import { machineRules } from './machineRules.ts';
import { MarkSearch } from './markSearch.ts';
import { type FailureObservation, FailureObservations } from './observations.ts';
import { programRules } from './programRules.ts';
import { placeOf, type SignatureRule } from './signature.ts';

/**
 * The signatures of failures, as data: the text that programs, CUDA, NCCL, PyTorch, launchers and the kernel write when something
 * breaks. The first that matches a line counts. Exceptions in general and the reports of launchers have a form of their own:
 * exceptions.ts, launchers.ts.
 *
 * A pattern is as narrow as the real text allows. Words such as "error", "timeout" or "out of memory" alone stand in the settings
 * and warnings of healthy programs. The time of a pattern grows with the length of a line, never with its square, because a failed
 * program writes the lines itself: hostileLines.test.ts measures it.
 */
export const signatureRules: readonly SignatureRule[] = [
  ...machineRules,
  ...programRules,
  ...collectiveRules,
];
/** The rule whose match ends what the launcher runs: later failures are consequences of it. */
const stopNotice = 'stop requested';

/** The rules that the text of a line is a hint to; null: to something else. */
type Hinted = ReadonlySet<SignatureRule | null>;

const completionHints = [
  'exits successfully',
  '`Trainer.fit` stopped',
  "'train_runtime'",
  'raining completed',
  'raining complete',
  'raining is ',
  'raining has ',
  'raining finished',
  'raining done',
  'done training',
  'Training time: ',
] as const;

/** Most lines have none of these and are done with. */
const hints = new MarkSearch<SignatureRule | null>([
  ...signatureRules.flatMap((rule) => rule.hints.map((hint) => [hint, rule] as const)),
  ...[...exceptionHints, ...exitHints, ...completionHints].map((hint) => [hint, null] as const),
]);
const noHints: Hinted = new Set();
/** Longer lines hold data. */
const textLengthMax = 8 * 1024;
/** Lines of loggers below the level of errors. NCCL calls its errors WARN. */
const belowError = /\b(?:DEBUG|INFO|WARN(?:ING)?)\b|^W\d{4} |\[W[ \d]/;
const ncclWarning = /NCCL WARN/;
/** Lines of NCCL in a healthy run, also about connections that are closed. */
const ncclTalk = /\bNCCL (?:INFO|TRACE|VERSION)\b/;
/** C++ of PyTorch writes `[rank3]:[E813 …`, and Python `[rank3]: ` in front of a traceback; launchers, in front of all. */
const libraryLine = /^\[[A-Z][\d ]/;
/** Lines right below an exception of programs that continue without the part that has failed. */
const goesOn =
  /\b(?:retry|retries|retrying|try(?:ing)? again|skipp(?:ed|ing)|ignor(?:ed|ing)|continuing|falling back|reconnect(?:ed|ing))\b/i;
const goesOnLinesMax = 3;
/** Lines behind a failure that do not show that the program continues. */
const aftermath = /^(?:frame #|wandb: |terminate called)/;

export class FailureReader {
  private readonly observations = new FailureObservations();
  private readonly exceptions = new ExceptionReader();
  private readonly summaries = new SummaryReader();
  private readonly collectives = new Collectives();
  private previous = '';
  private completedAt: number | null = null;
  /** Ranks in front of lines are a launcher's, and show nothing about the lines. */
  private ranksAreOfLauncher = false;
  /** Something has gone wrong, or seems to have: what follows may be more of it. */
  private isTroubled = false;
  /** The newest exception: its sort, and the line that it was in. */
  private exception: { readonly sort: string; readonly sequence: number } | null = null;
  /** The first, and that of torchrun's newest summary, which names the rank. */
  private readonly codes = new Map<'exit' | 'summary', ReportedExit>();

  line(whole: Line): void {
    const line =
      whole.text.length <= textLengthMax ? whole : { ...whole, text: whole.text.slice(0, textLengthMax) };
    const { text, rank } = line;
    const previous = this.previous;
    this.previous = text;
    this.observations.tick();
    if (rank !== null) this.collectives.see(rank);
    if (this.summaries.open) {
      this.addReportedExit('summary', this.summaries.read(text, line.number));
      return;
    }
    const isFrame = this.exceptions.open && /^\s/.test(text);
    // No rule is about the frames of a traceback.
    const hinted = isFrame ? noHints : hints.in(text);
    if (hinted.size === 0 && !this.exceptions.open) {
      this.passOrdinary(line);
      return;
    }
    this.look(line, previous, isFrame, hinted);
  }

  /**
   * The program has come to this step, or to this fraction of an epoch, so that it has dealt with earlier trouble.
   * Invoked before `line` with the line that shows it.
   */
  movedTo(position: number): void {
    if (this.observations.moveTo(position)) this.completedAt = null;
  }

  /** @param end null: nothing but the output is known */
  result(end: ProcessEnd | null = null): FailureResult {
    const { reportedExit, isBeginning } = this.exitObservation();
    const others = [...this.observations.all()].filter(({ sort }) => sort !== 'exit' && sort !== 'summary');
    const observations = others.map(({ sort, observation, ranks }) => {
      const verdict = ranks > 1 ? ruleNamed(sort)?.onSeveralRanks : undefined;
      return verdict === undefined
        ? observation
        : { ...observation, found: withVerdict(observation.found, verdict) };
    });
    return judgeFailure(
      {
        observations: reportedExit === null ? observations : [...observations, reportedExit],
        reportedExit,
        exitIsBeginning: isBeginning,
        stoppedAt: this.observations.get(stopNotice)?.sequence ?? null,
        completedAt: this.completedAt,
        steps: this.observations.steps,
        ordinaryLines: this.observations.ordinaryLines,
        timeoutVerdict: this.collectives.verdict(),
      },
      end,
    );
  }

  private look(line: Line, previous: string, isFrame: boolean, hinted: Hinted): void {
    const { text, number } = line;
    if (this.summaries.opensWith(text)) {
      this.summaries.read(text, number);
      return;
    }
    if (!isFrame && this.lookForSignature(line, hinted)) return;
    if (!isFrame && this.addReportedExit('exit', readReportedExit(text, number))) return;
    const seen = this.exceptions.read({ ...line, rank: this.ranked(line) }, previous);
    this.isTroubled ||= this.exceptions.open || seen !== null;
    if (seen !== null) {
      const { kind, consequence, weak } = seen;
      const strength = kind === 'stopped_by_signal' ? 'stop' : 'program';
      const evidence = { line: number, text: evidenceText(text), rank: line.rank };
      const sort = `exception ${kind} ${consequence} ${weak}`;
      const found = finding({ kind, strength, consequence, evidence });
      this.observations.add(sort, { found, weak, final: this.ranked(line) !== null });
      this.exception = { sort, sequence: this.observations.now };
    } else if (isCompletion(text)) this.completedAt = this.observations.now;
    else if (!this.exceptions.open) this.passOrdinary(line);
  }

  /** @returns true: a rule knows the line */
  private lookForSignature(line: Line, hinted: Hinted): boolean {
    const { text } = line;
    if (hinted.size === Number(hinted.has(null)) || ncclTalk.test(text)) return false;
    if (isSourceCode(text)) return false;
    for (const rule of signatureRules) {
      if (!hinted.has(rule)) continue;
      const at = placeOf(rule.patterns, text);
      if (at === null || rule.unless?.test(text) === true) continue;
      if (rule.within !== undefined && !this.exceptions.isWithin(rule.within)) continue;
      this.addSignature(rule, line, at);
      return true;
    }
    return false;
  }

  private addSignature(rule: SignatureRule, line: Line, at: number): void {
    const { kind, strength, consequence = false, atAnyLevel = false, needsProof = false } = rule;
    const rank = kind === 'nccl_timeout' ? this.collectives.add(line) : line.rank;
    const before = line.text.slice(0, at);
    const isMild = !atAnyLevel && belowError.test(before) && !ncclWarning.test(before);
    this.isTroubled = true;
    const { handled } = this.exceptions.close();
    const weak = isMild || (handled && this.ranked(line) === null);
    const { blame, retry, advice } = rule;
    const found = finding({
      kind,
      strength,
      consequence,
      evidence: { line: line.number, text: evidenceText(line.text, at), rank },
      ...(blame === undefined ? {} : { blame }),
      ...(retry === undefined ? {} : { retry }),
      ...(advice === undefined ? {} : { advice }),
      ...rule.weigh?.(line.text),
    });
    this.observations.add(weak ? `${rule.name} (mild)` : rule.name, {
      found,
      weak,
      final: consequence,
      needsProof,
    });
  }

  private addReportedExit(sort: 'exit' | 'summary', reportedExit: ReportedExit | null): boolean {
    if (reportedExit === null) return false;
    const known = this.observations.get(sort);
    this.observations.add(sort, {
      found: exitFinding(reportedExit),
      final: true,
      needsProof: reportedExit.code === -9,
    });
    if (known === null || sort === 'summary') this.codes.set(sort, reportedExit);
    return true;
  }

  /** torchrun reports the exit of a worker twice: at once, and in its summary, which knows the rank. */
  private exitObservation(): {
    readonly reportedExit: FailureObservation | null;
    readonly isBeginning: boolean;
  } {
    const atOnce = this.observations.get('exit');
    const summary = this.observations.get('summary');
    const reportedExit = summary ?? atOnce;
    const code = this.codes.get(summary === null ? 'exit' : 'summary')?.code ?? 0;
    if (reportedExit === null) return { reportedExit, isBeginning: false };
    const timeout = this.observations.get('collective timeout');
    // A watchdog ends its process with SIGABRT, which now and then becomes a SIGSEGV.
    const followsTimeout = code === -11 && timeout !== null && timeout.sequence < reportedExit.sequence;
    const isBeginning = diedByItself(code) && !followsTimeout;
    if (atOnce === null || summary === null || this.codes.get('exit')?.code !== code)
      return { reportedExit, isBeginning };
    const { line, text } = atOnce.found.evidence;
    const evidence = { line, text, rank: summary.found.evidence.rank };
    return { reportedExit: { ...atOnce, found: { ...summary.found, evidence } }, isBeginning };
  }

  private passOrdinary({ text, rank }: Line): void {
    if (rank !== null && !this.isTroubled && !libraryLine.test(text)) this.ranksAreOfLauncher = true;
    if (this.exception !== null) this.readExcuse(text, this.exception);
    if (text.charCodeAt(0) > 0x20 && !aftermath.test(text)) this.observations.passOrdinary();
  }

  /** `Network error (ReadTimeout), entering retry loop.` */
  private readExcuse(text: string, { sort, sequence }: { sort: string; sequence: number }): void {
    const isNear = this.observations.now - sequence <= goesOnLinesMax;
    if (isNear && goesOn.test(text)) this.observations.excuse(sort);
    if (!isNear || goesOn.test(text)) this.exception = null;
  }

  /** The rank in front of a line that only PyTorch puts there, which is before what ends the process. */
  private ranked({ rank }: Line): number | null {
    return this.ranksAreOfLauncher ? null : rank;
  }
}

/** The meaning of the last line of a process that has failed. */
export function findingInMessage(message: string): FailureFinding {
  const reader = new FailureReader();
  reader.line({ text: message, number: 1, rank: null });
  const { found } = reader.result({ exitCode: 1, signal: null, oomKilled: false });
  if (found !== null && found.evidence.line !== null) return found;
  return finding({
    kind: 'python_exception',
    strength: 'program',
    evidence: { line: 1, text: message, rank: null },
  });
}

function ruleNamed(name: string): SignatureRule | undefined {
  return signatureRules.find((rule) => rule.name === name);
}

/** The lines that programs print when they have completed. */
const completions: readonly RegExp[] = [
  /\bProcess \d{1,10} exits successfully\.?$/,
  /`Trainer\.fit` stopped: `max_(?:epochs|steps|time)=/,
  /'train_runtime': /,
  /Training completed\. Do not forget to share your model/,
  /\[after training is done\]/,
  /\bdone training in [\d.]{1,20} seconds/,
  /^Training time: [\d.]{1,20} ?s/,
  // At the beginning, or behind the prefix of a logger: comments have it in the middle of a sentence.
  /(?:^|[\]:|>-] {0,3})Training (?:is |has )?(?:completed?|finished|done)[.!]?\s{0,20}$/i,
];

/** One of these is in every such line; one search instead of eight. */
const likely = /exits successfully|`Trainer\.fit` stopped|'train_runtime'|training/i;

function isCompletion(text: string): boolean {
  return likely.test(text) && completions.some((pattern) => pattern.test(text));
}

/** How a line of Python or a comment begins, where it is no sentence. */
const statement =
  /^\s{0,80}(?:#(?!\d)|\/\/|"""|raise \w|except[ :]|assert[ (]|elif |(?:if|for|while|with) .{0,400}:(?:$| {0,4}#)|try:|return |def \w|class \w|@\w)/;
const call = /^\s{0,80}(?:print\(|log(?:ger|ging)?\.\w|warnings\.|self\.)/;
const assigned = /^\s{0,80}[A-Za-z_][\w.]{0,80}(?:\[[^\]]{0,80}\])? ?[-+*/|]?= ?["'f[({\w]/;

function isSourceCode(text: string): boolean {
  return statement.test(text) || call.test(text) || assigned.test(text);
}
