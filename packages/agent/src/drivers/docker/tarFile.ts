/** The one file of an archive with which an engine answers for a path (ustar or pax, as Go writes them). */

const blockBytes = 512;

/** @returns null: it is not a file, or not complete */
export function archivedFile(archive: Buffer): Buffer | null {
  for (let at = 0; at + blockBytes <= archive.length; ) {
    const header = archive.subarray(at, at + blockBytes);
    const type = String.fromCharCode(header[156] ?? 0);
    const bytes = Number.parseInt(header.toString('latin1', 124, 135), 8) || 0;
    const content = archive.subarray(at + blockBytes, at + blockBytes + bytes);
    if (type === '0' || type === '\0') return content.length === bytes ? content : null;
    // What precedes the file are its extended attributes.
    if (type !== 'x' && type !== 'g') return null;
    at += blockBytes + Math.ceil(bytes / blockBytes) * blockBytes;
  }
  return null;
}
