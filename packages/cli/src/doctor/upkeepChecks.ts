/** What will run out on the coordinator, for `muster doctor`: certificates and disks. Pure. */
import type { DoctorCheck } from '@muster/agent/doctor/doctorReport';
import type { CertificateEnd, DiskPart, FileSystemSpace, UpkeepView } from '@muster/common/upkeep';
import { bytesText, durationText } from '../output/times.ts';

const dayMs = 24 * 60 * 60_000;

/** Changing the CA means visiting every node. */
const authorityWarnedMs = 180 * dayMs;
/** The server's own is renewed 30 days before its end, so something is wrong by then. */
const serverWarnedMs = 15 * dayMs;
/** That of a node that is connected is renewed two days before its end. */
const nodeWarnedMs = 2 * dayMs;

/** @param nowMs wall clock of this machine, which may be another than the coordinator's */
export function upkeepChecks(
  { certificates, parts, fileSystems }: UpkeepView,
  nowMs: number,
  programName: string,
): readonly DoctorCheck[] {
  return [
    ...certificateChecks(certificates, nowMs, programName),
    ...fileSystems.map(fileSystemCheck),
    ...(parts.length === 0 ? [] : [check('disk use', 'disk', 'ok', parts.map(partText).join('; '))]),
  ];
}

function certificateChecks(
  all: readonly CertificateEnd[],
  nowMs: number,
  programName: string,
): readonly DoctorCheck[] {
  const own = all.filter(({ kind }) => kind !== 'node').map((each) => ownCheck(each, nowMs));
  const nodes = all.filter(({ kind }) => kind === 'node');
  const ending = nodes.filter(({ expiresAtMs }) => expiresAtMs - nowMs < nodeWarnedMs);
  const good = nodes.length - ending.length;
  return [
    ...own,
    ...ending.map((each) => nodeCheck(each, nowMs, programName)),
    ...(good === 0 ? [] : [check('certificates', 'nodes', 'ok', `${good} valid for at least 2 d`)]),
  ];
}

function ownCheck({ kind, expiresAtMs }: CertificateEnd, nowMs: number): DoctorCheck {
  const leftMs = expiresAtMs - nowMs;
  const isAuthority = kind === 'ca';
  const name = isAuthority ? 'CA' : 'server';
  const remedy = isAuthority
    ? 'Plan a new CA, and a certificate from it for each node: docs/operations.md, TLS.'
    : 'Restart the coordinator, which makes another at each start; its log says why it was not renewed.';
  if (leftMs <= 0) return check('certificates', name, 'problem', endedText(leftMs), remedy);
  const isNear = leftMs < (isAuthority ? authorityWarnedMs : serverWarnedMs);
  return isNear
    ? check('certificates', name, 'warning', leftText(leftMs), remedy)
    : check('certificates', name, 'ok', leftText(leftMs));
}

function nodeCheck({ node, expiresAtMs }: CertificateEnd, nowMs: number, programName: string): DoctorCheck {
  const leftMs = expiresAtMs - nowMs;
  const name = node ?? '';
  if (leftMs > 0) {
    const remedy = `Its agent renews it once it is connected; after the end it joins again with a token.`;
    return check('certificates', name, 'warning', leftText(leftMs), remedy);
  }
  const remedy = `\`${programName} token create ${name} --replace\`, and start its agent with that token; or \`${programName} node remove ${name}\`.`;
  return check('certificates', name, 'problem', endedText(leftMs), remedy);
}

function leftText(leftMs: number): string {
  return `it expires in ${durationText(leftMs)}`;
}

function endedText(leftMs: number): string {
  return `it expired ${durationText(-leftMs)} ago`;
}

function fileSystemCheck({ path, sizeBytes, availableBytes, reserveBytes }: FileSystemSpace): DoctorCheck {
  const kept = reserveBytes === 0 ? '' : `, ${bytesText(reserveBytes)} kept in reserve`;
  const message = `${bytesText(availableBytes)} of ${bytesText(sizeBytes)} free${kept}`;
  if (availableBytes < reserveBytes) {
    const missing = bytesText(reserveBytes - availableBytes);
    const remedy = `Free at least ${missing}: no jobs are taken until then.`;
    return check('disk use', path, 'problem', message, remedy);
  }
  const isShort = availableBytes < Math.max(2 * reserveBytes, sizeBytes / 50);
  const remedy = isShort ? 'Free space, or keep less: docs/operations.md, Retention.' : null;
  return check('disk use', path, isShort ? 'warning' : 'ok', message, remedy);
}

const partNames: Readonly<Record<DiskPart['part'], string>> = {
  store: 'store',
  events: 'events in it about',
  logs: 'logs',
  rows: 'metrics of jobs',
  backups: 'copies of earlier stores',
  reserve: 'reserve',
};

function partText({ part, usedBytes, limitBytes }: DiskPart): string {
  const limit = limitBytes === null ? '' : ` of ${bytesText(limitBytes)}`;
  return `${partNames[part]} ${bytesText(usedBytes)}${limit}`;
}

function check(
  area: string,
  name: string,
  state: DoctorCheck['state'],
  message: string,
  remedy: string | null = null,
): DoctorCheck {
  return { area, name, state, chosen: false, message, evidence: null, remedy };
}
