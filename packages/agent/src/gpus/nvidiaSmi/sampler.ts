/** Reads samples: one call for all cards, then one for each card that its answer lacks. */
import { cardUuid } from '@muster/common/hardware';
import type { GpuProblem, GpuProcess, GpuSample, GpuSampling } from '../gpuSource.ts';
import {
  fieldsToQuery,
  isUuidField,
  parseCsv,
  problemsOfRow,
  processesByCard,
  processFields,
  sampleOfRow,
  uuidOfRow,
} from './csv.ts';
import type { FoundCard } from './inventory.ts';
import type { Inventory } from './lister.ts';
import { cardProblem, type NvidiaSmi, type Reply, type SmiFailure, unknownFieldIn } from './nvidiaSmi.ts';
import { parseSmiXml, problemsOfCard } from './xml.ts';
import { sampleOfCard, sampleOfMigDevice, withoutGuestZeros } from './xmlSample.ts';

export interface SamplerOptions {
  readonly smi: NvidiaSmi;
  /** Of a call for CSV. */
  readonly deadlineMs: number;
  /** Of a call for XML. */
  readonly documentDeadlineMs: number;
  /** Monotonic. */
  readonly nowMs: () => number;
}

/**
 * The processes cost a second start of the program, which without persistence mode initialises every card: so only
 * where the first took less than this.
 */
const cheapStartMs = 250;

const csvFormat = '--format=csv,noheader,nounits';

/** The result of one call. */
interface Reading {
  /** By UUID of the card. */
  readonly cards: ReadonlyMap<string, CardReading>;
  /** What was printed beside or in place of cards. */
  readonly failure: SmiFailure | null;
}

interface CardReading {
  readonly samples: readonly GpuSample[];
  readonly problems: readonly GpuProblem[];
}

export class SmiSampler {
  private readonly smi: NvidiaSmi;
  private readonly deadlineMs: number;
  private readonly documentDeadlineMs: number;
  private readonly nowMs: () => number;
  /** That this nvidia-smi knows; null: not asked yet. */
  private fields: readonly string[] | null = null;

  constructor({ smi, deadlineMs, documentDeadlineMs, nowMs }: SamplerOptions) {
    this.smi = smi;
    this.deadlineMs = deadlineMs;
    this.documentDeadlineMs = documentDeadlineMs;
    this.nowMs = nowMs;
  }

  async sample(inventory: Inventory): Promise<GpuSampling> {
    const { cards } = inventory;
    if (cards.length === 0) return { samples: [], problems: [] };
    const hasMig = cards.some(({ card }) => card.migEnabled);
    const read = hasMig
      ? (uuids: readonly string[]) => this.readXml(inventory, uuids)
      : (uuids: readonly string[]) => this.readCsv(cards, uuids);

    const beforeMs = this.nowMs();
    const joint = await read(inventory.hasDeadCard ? cards.map(({ uuid }) => uuid) : []);
    const startMs = this.nowMs() - beforeMs;

    const readings = new Map(joint.cards);
    const problems: GpuProblem[] = [];
    const missing = cards.filter(({ uuid }) => !readings.has(uuid));
    if (joint.failure?.scope === 'driver') {
      problems.push(joint.failure.problem);
    } else if (joint.failure?.scope === 'no_devices') {
      const { evidence } = joint.failure.problem;
      problems.push(...missing.map((card) => lostCard(card, evidence)));
    } else {
      if (joint.failure !== null && missing.length === 0) problems.push(joint.failure.problem);
      problems.push(...(await this.askOneByOne(cards, missing, read, readings)));
    }
    problems.push(...[...readings.values()].flatMap((reading) => reading.problems));

    const samples = cards.flatMap(({ uuid }) => readings.get(uuid)?.samples ?? []);
    const isAnswering = samples.length > 0 && !problems.some(({ kind }) => kind === 'hung');
    if (hasMig || !isAnswering || startMs > cheapStartMs) return { samples, problems };
    return { samples: withProcesses(samples, await this.readProcesses()), problems };
  }

  /**
   * Fills in the readings of the cards that answer; stops where the driver hangs, since nothing is started behind it. One
   * lost card can make every call fail, whichever card it asks for: then the failure names the lost one, and the others
   * are only hidden behind it.
   * @param all that are known
   * @param missing of them, those to ask for
   */
  private async askOneByOne(
    all: readonly FoundCard[],
    missing: readonly FoundCard[],
    read: (uuids: readonly string[]) => Promise<Reading>,
    readings: Map<string, CardReading>,
  ): Promise<readonly GpuProblem[]> {
    const problems: GpuProblem[] = [];
    for (const found of missing) {
      const { cards: answered, failure } = await read([found.uuid]);
      const reading = answered.get(found.uuid);
      if (reading !== undefined) {
        readings.set(found.uuid, reading);
      } else if (failure === null || failure.scope === 'no_devices') {
        problems.push(lostCard(found, failure?.problem.evidence ?? 'nvidia-smi printed nothing about it'));
      } else if (namesAnother(failure, found)) {
        problems.push(hiddenCard(found, failure.problem));
        const named = all.find(({ card }) => card.pciBusId === failure.problem.pciBusId);
        const isKnown = problems.some(({ kind, gpuUuid }) => kind !== 'hidden' && gpuUuid === named?.uuid);
        if (named !== undefined && !isKnown) problems.push({ ...failure.problem, gpuUuid: named.uuid });
      } else {
        const { pciBusId } = found.card;
        if (problems.some(({ kind, gpuUuid }) => kind !== 'hidden' && gpuUuid === found.uuid)) continue;
        problems.push({ ...failure.problem, gpuUuid: found.uuid, pciBusId });
        if (failure.problem.kind === 'hung') break;
      }
    }
    return problems;
  }

  /** @param uuids of the cards to ask for; empty: all at once */
  private async readCsv(cards: readonly FoundCard[], uuids: readonly string[]): Promise<Reading> {
    const query = await this.query(selection(uuids));
    if ('scope' in query) return { cards: new Map(), failure: query };
    const { reply, fields } = query;
    if (reply.kind === 'no_answer') return { cards: new Map(), failure: this.smi.failureOf(reply) };

    const { rows, refused } = parseCsv(reply.text, fields);
    const readings = new Map<string, CardReading>();
    for (const row of rows) {
      const found = cards.find(({ uuid }) => uuid === uuidOfRow(row));
      if (found === undefined) continue;
      const sample = sampleOfRow(row, found.uuid);
      readings.set(
        found.uuid,
        readingOf(
          [found.card.isVgpuGuest ? withoutGuestZeros(sample) : sample],
          problemsOfRow(row, found.uuid),
        ),
      );
    }
    const isAnswer = rows.length > 0 && refused.length === 0;
    return { cards: readings, failure: isAnswer ? null : this.smi.failureOf(reply) };
  }

  private async query(
    selected: readonly string[],
  ): Promise<SmiFailure | { readonly reply: Reply; readonly fields: readonly string[] }> {
    const fields = await this.knownFields();
    if ('scope' in fields) return fields;
    const reply = await this.askFor(fields, selected);
    const unknown = reply.kind === 'printed' ? unknownFieldIn(reply.text) : null;
    if (unknown === null || isUuidField(unknown)) return { reply, fields };

    // The program was replaced since it listed its fields.
    this.fields = null;
    const renewed = await this.knownFields();
    if ('scope' in renewed) return renewed;
    this.fields = renewed.filter((field) => field !== unknown);
    return { reply: await this.askFor(this.fields, selected), fields: this.fields };
  }

  private askFor(fields: readonly string[], selected: readonly string[]): Promise<Reply> {
    return this.smi.ask([`--query-gpu=${fields.join(',')}`, csvFormat, ...selected], this.deadlineMs);
  }

  private async knownFields(): Promise<readonly string[] | SmiFailure> {
    if (this.fields !== null) return this.fields;
    const reply = await this.smi.ask(['--help-query-gpu'], this.deadlineMs);
    const fields = reply.kind === 'printed' ? fieldsToQuery(reply.text) : [];
    if (!fields.some(isUuidField)) return this.smi.failureOf(reply);
    this.fields = fields;
    return fields;
  }

  private async readXml({ cards, listing }: Inventory, uuids: readonly string[]): Promise<Reading> {
    const reply = await this.smi.ask(['-q', '-x', ...selection(uuids)], this.documentDeadlineMs);
    const log = reply.kind === 'printed' ? parseSmiXml(reply.text) : null;
    if (log === null) return { cards: new Map(), failure: this.smi.failureOf(reply) };
    const readings = new Map<string, CardReading>();
    for (const card of log.cards) {
      if (!cards.some(({ uuid }) => uuid === card.uuid)) continue;
      const samples = listing.gpus
        .filter((gpu) => cardUuid(gpu) === card.uuid)
        .flatMap(({ uuid, mig }) => {
          if (mig === null) return [sampleOfCard(card, uuid)];
          const device = card.migDevices.find(
            ({ gpuInstanceId, computeInstanceId }) =>
              gpuInstanceId === mig.gpuInstanceId && computeInstanceId === mig.computeInstanceId,
          );
          return device === undefined ? [] : [sampleOfMigDevice(card, device, uuid)];
        });
      readings.set(card.uuid ?? '', readingOf(samples, problemsOfCard(card)));
    }
    return { cards: readings, failure: null };
  }

  /** By UUID of the card; null: this driver does not report them. */
  private async readProcesses(): Promise<ReadonlyMap<string, readonly GpuProcess[]> | null> {
    const reply = await this.smi.ask(
      [`--query-compute-apps=${processFields.join(',')}`, csvFormat],
      this.deadlineMs,
    );
    if (reply.kind === 'no_answer' || reply.status !== 0) return null;
    return processesByCard(reply.text);
  }
}

/** What a lost card still prints is what was cached before. */
function readingOf(samples: readonly GpuSample[], problems: readonly GpuProblem[]): CardReading {
  return { samples: problems.some(({ kind }) => kind === 'lost') ? [] : samples, problems };
}

function withProcesses(
  samples: readonly GpuSample[],
  processes: ReadonlyMap<string, readonly GpuProcess[]> | null,
): readonly GpuSample[] {
  if (processes === null) return samples;
  return samples.map((sample) => ({ ...sample, processes: processes.get(sample.uuid) ?? [] }));
}

function selection(uuids: readonly string[]): readonly string[] {
  return uuids.length === 0 ? [] : ['-i', uuids.join(',')];
}

/** Of a failure that names no place it is taken for granted that it speaks of the card that was asked for. */
function namesAnother({ scope, problem }: SmiFailure, { card }: FoundCard): boolean {
  return scope === 'card' && problem.pciBusId !== null && card.pciBusId !== problem.pciBusId;
}

function hiddenCard({ uuid, card }: FoundCard, { pciBusId, evidence }: GpuProblem): GpuProblem {
  const message = `It is not shown while the GPU at ${pciBusId ?? 'an unknown place'} is lost.`;
  return { kind: 'hidden', gpuUuid: uuid, pciBusId: card.pciBusId, message, evidence };
}

function lostCard({ uuid, card }: FoundCard, evidence: string): GpuProblem {
  return cardProblem('lost', { uuid, pciBusId: card.pciBusId }, evidence);
}
