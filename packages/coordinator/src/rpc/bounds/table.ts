/**
 * How much of anything an agent may say: every text, list and map of every message that agents send, in one place. A test
 * fails for a field without a line here. What identifies something, and counts, are refused beyond their bound, because cut
 * they would name something else. Words for people, and what hardware calls itself, are cut, and end with `…`.
 */
import { lookFoundMax } from '@muster/common/checkpoints';
import { helloTasksMax, observedMax, sessionBytesMax } from '@muster/common/wire/agentLimits';

/** Of a text: characters. Of a list or map: entries. */
export interface Bound {
  readonly max: number;
  readonly over: 'refuse' | 'cut';
  /** Of each text of a list; of keys and values of a map. */
  readonly each?: number;
}

/** By field. */
type Bounds = Readonly<Record<string, Bound>>;

const identity = (max: number): Bound => ({ max, over: 'refuse' });
const text = (max: number): Bound => ({ max, over: 'cut' });
const atMost = (max: number, each?: number): Bound => ({
  max,
  over: 'refuse',
  ...(each === undefined ? {} : { each }),
});

/** A word of a fixed list, or the name of a device. */
const word = text(64);
/** One sentence for people; who keeps it keeps less. */
const sentence = text(1_000);
/** Cut, it is longer than any that is taken. */
const path = text(1_024);
const address = text(256);
const gpuUuid = text(128);

/** Of a whole message, in bytes. */
export const messageBytesMax: Readonly<Record<string, number>> = {
  JoinRequest: 16 * 1024,
  ReadSecretsRequest: 1024,
  AgentMessage: sessionBytesMax,
  LogUpload: 260 * 1024,
  RowUpload: 64 * 1024,
  // A Prometheus page is the largest of what agents send.
  TelemetryUpload: 4 * 1024 * 1024 + 64 * 1024,
};

/** Tags on the wire, which is what decoding costs: a Hello of a node full of tasks has some 100,000. */
export const fieldsMax = 150_000;

/** Messages whose numbers were printed by programs, which may print any: a loss that has exploded is still reported. */
export const printed: ReadonlySet<string> = new Set(['TrainingRow']);

export const bounds: Readonly<Record<string, Bounds>> = {
  JoinRequest: { joinToken: identity(1_024), nodeName: identity(64), credential: identity(4_096) },
  Hello: {
    agentVersion: word,
    instanceId: identity(128),
    bootId: identity(128),
    observed: atMost(helloTasksMax),
    conditions: atMost(1_024),
    checkpoints: atMost(4_096),
    termProof: identity(128),
    clusterId: identity(64),
    proofs: atMost(helloTasksMax),
  },
  Continuity: {
    token: identity(128),
    previousToken: identity(128),
    hostName: address,
    firmwareUuid: identity(64),
    cardAddresses: atMost(256, 64),
  },
  TokenKept: { token: identity(128) },
  TaskProof: { proof: identity(128) },
  CredentialOffer: { credential: identity(4_096) },
  TaskRef: { jobId: identity(64) },
  Heartbeat: { observed: atMost(observedMax) },
  NodeStatus: { conditions: atMost(1_024) },
  NodeInventory: {
    gpus: atMost(256),
    addresses: atMost(256, 64),
    labels: atMost(256, 256),
    drivers: atMost(16, 64),
    links: atMost(8_192),
    nics: atMost(1_024),
    rdmaDevices: atMost(512),
  },
  Gpu: { uuid: gpuUuid, model: gpuUuid, pciBusId: word, cpuAffinity: text(1_024), serial: word },
  MigInstance: { parentUuid: gpuUuid, profile: word },
  DeviceLink: { from: gpuUuid, to: gpuUuid, kind: word },
  Nic: { name: word, state: word, addresses: atMost(64, 64), pciBusId: word },
  RdmaDevice: { name: word, linkLayer: word, state: word, nic: word, pciBusId: word },
  GpuDriver: { source: word, profilingSource: word, driverVersion: word, cudaVersion: word },
  HostFacts: {
    hostname: address,
    os: address,
    kernel: address,
    cpuModel: address,
    fileSystems: atMost(1_024),
  },
  MachineFacts: {
    model: address,
    board: address,
    bios: address,
    disks: atMost(256),
    memoryModules: atMost(256),
  },
  MachineDisk: { model: address, type: word },
  MemoryModule: { model: address, type: word },
  FileSystem: { mountPoint: path, device: path, type: word },
  Condition: {
    kind: word,
    gpuUuid,
    severity: word,
    action: word,
    message: sentence,
    evidence: text(1_000),
    clears: word,
  },
  TaskReport: { doing: sentence, gpuUuids: atMost(1_024, 128), jobName: word },
  TaskExit: { signal: word, artifacts: atMost(100) },
  StoredArtifact: { name: identity(64), digest: identity(128) },
  TaskFailure: { source: word, message: text(2_000), kind: word, blame: word },
  Cause: { kind: word, message: text(2_000), node: word, blame: word },
  Evidence: { text: text(2_000) },
  TrainingProgress: { framework: word, latest: atMost(64, 64), notFinite: atMost(64, 64) },
  HangSign: { gpus: word },
  Prepared: { endpoints: atMost(256) },
  Master: { addr: address },
  Endpoint: { address, network: word, interface: word },
  PathFindings: { paths: atMost(4_096) },
  PathResult: { error: sentence },
  PreflightResult: { error: sentence, backend: word, pairs: atMost(4_096) },
  // What no agent says: a field of a checkpoint that clients get.
  CheckpointEvaluation: {
    state: word,
    jobId: identity(64),
    metrics: atMost(64, 64),
    cause: word,
    message: sentence,
  },
  CheckpointSeen: { by: word },
  Checkpoint: {
    name: path,
    version: word,
    format: word,
    metrics: atMost(64, 64),
    digest: gpuUuid,
    verdict: word,
    depth: word,
    problem: sentence,
    node: word,
    fingerprint: word,
  },
  CheckpointLook: { found: atMost(lookFoundMax), problem: sentence },
  FoundCheckpoint: { by: identity(64) },
  TrainingSign: { kind: word, text: sentence },
  RowUpload: { rows: atMost(512), printed: atMost(64) },
  ValueCount: { metric: word },
  LogUpload: { data: identity(256 * 1024) },
  TelemetryUpload: { gpus: atMost(1_024), training: atMost(1_024) },
  GpuReading: { gpuUuid },
  TrainingReading: { values: atMost(64, 64) },
  MetricsPage: { text: identity(4 * 1024 * 1024) },
};
