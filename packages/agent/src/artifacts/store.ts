/** The seam between the agent and an object store: what artifacts need of one, and what can go wrong there. */
import type { StoreSpec } from '@muster/common/spec/artifactFields';

/**
 * - `unreachable`: it does not answer, or too many ask it; a repetition may help
 * - `missing`: it has no such object
 * - `refused`: it answers, and will not do this with these settings, key and bucket
 */
export type ArtifactStoreErrorKind = 'unreachable' | 'missing' | 'refused';

/** The message is a sentence for people, with the remedy. */
export class ArtifactStoreError extends Error {
  override readonly name = 'ArtifactStoreError';
  readonly kind: ArtifactStoreErrorKind;

  constructor(kind: ArtifactStoreErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** An object that is sent in parts. It is there once it has been completed, and not before. */
export interface PartUpload {
  /** @param number from 1 @throws {ArtifactStoreError} */
  part(number: number, content: Buffer, abort: AbortSignal): Promise<void>;
  /** @throws {ArtifactStoreError} */
  complete(abort: AbortSignal): Promise<void>;
  /** Gives the parts up. @throws {ArtifactStoreError} */
  discard(): Promise<void>;
}

/** Keys are those of objects in the bucket of the store. Nothing is repeated here. */
export interface ArtifactStore {
  /** In one request; an object of this key is replaced. @throws {ArtifactStoreError} */
  put(key: string, content: Buffer, abort: AbortSignal): Promise<void>;
  /** @throws {ArtifactStoreError} */
  beginParts(key: string, abort: AbortSignal): Promise<PartUpload>;
  /**
   * @param from the first byte to read, before the end of the object
   * @returns the content, which must be read to its end or closed; reading it rejects with an `ArtifactStoreError`
   * @throws {ArtifactStoreError}
   */
  get(key: string, from: number, abort: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  close(): void;
}

/** The credentials for a store. */
export interface StoreKey {
  readonly id: string;
  readonly secret: string;
}

export type OpenArtifactStore = (spec: StoreSpec, key: StoreKey) => Promise<ArtifactStore>;

/** The client is large, and most tasks have no artifacts in a store. */
export const openArtifactStore: OpenArtifactStore = async (spec, key) => {
  const { openS3Store } = await import('./s3Store.ts');
  return openS3Store(spec, key);
};

/** `s3://BUCKET/KEY`, checked. The key is empty for a bucket alone. */
export function objectPlaceOf(url: string): { readonly bucket: string; readonly key: string } {
  const [bucket = '', ...parts] = url.slice('s3://'.length).split('/');
  return { bucket, key: parts.join('/') };
}

/** @throws {ArtifactStoreError} of another form than `ACCESS_KEY_ID:SECRET_ACCESS_KEY` */
export function storeKeyOf(value: Uint8Array, { secret }: Pick<StoreSpec, 'secret'>): StoreKey {
  const [, id = '', own = ''] =
    /^([\w+=,.@/-]{1,128}):(\S{1,256})$/.exec(Buffer.from(value).toString('utf8').trim()) ?? [];
  if (id !== '') return { id, secret: own };
  throw new ArtifactStoreError(
    'refused',
    `secret ${secret} is not a key of a store: set it again with ACCESS_KEY_ID:SECRET_ACCESS_KEY as its value`,
  );
}
