/** A bind mount of a container; both paths absolute. */
export interface Volume {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export const volumePattern = /^\/[^:]*:\/[^:]*(?::(?:ro|rw))?$/;

/**
 * Reads `/host/path:/container/path[:ro|rw]`.
 * @returns null for another form, for a path with a `..` part (it could leave an allowed directory) and for a mount over
 * the container's root
 */
export function parseVolume(text: string): Volume | null {
  if (!volumePattern.test(text)) return null;
  const [source = '', target = '', mode = 'rw'] = text.split(':');
  if ([source, target].some((path) => path.split('/').includes('..'))) return null;
  if (/^\/+$/.test(target)) return null;
  return { source, target, readOnly: mode === 'ro' };
}

export function formatVolume(volume: Volume): string {
  return `${volume.source}:${volume.target}${volume.readOnly ? ':ro' : ''}`;
}
