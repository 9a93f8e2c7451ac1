/** Artifacts in an S3-compatible store. Loaded when the first task has some (`openArtifactStore`). */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { messageOf } from '@muster/common/errors';
import type { StoreSpec } from '@muster/common/spec/artifactFields';
import { isMapping } from '@muster/common/spec/path';
import {
  type ArtifactStore,
  ArtifactStoreError,
  objectPlaceOf,
  type PartUpload,
  type StoreKey,
} from './store.ts';

const connectMs = 10_000;
/** Without a byte. A store that puts a large object together takes its time to answer. */
const silenceMs = 120_000;

export function openS3Store(spec: StoreSpec, { id, secret }: StoreKey): ArtifactStore {
  const { bucket: Bucket } = objectPlaceOf(spec.url);
  const client = new S3Client({
    region: spec.region,
    forcePathStyle: spec.pathStyle,
    credentials: { accessKeyId: id, secretAccessKey: secret },
    // Repetitions and their limit are those of the transfer, which knows what is left to do.
    maxAttempts: 1,
    // Signatures cover the content already. Sums in trailers are what stores other than Amazon's often do not know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: connectMs, socketTimeout: silenceMs },
    ...(spec.endpoint === null ? {} : { endpoint: spec.endpoint }),
  });
  const asked = async <T>(Key: string, abort: AbortSignal, request: () => Promise<T>): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      abort.throwIfAborted();
      throw explained(error, spec, Key);
    }
  };
  return {
    put: (Key, Body, abort) =>
      asked(Key, abort, async () => {
        await client.send(new PutObjectCommand({ Bucket, Key, Body }), { abortSignal: abort });
      }),
    async beginParts(Key, abort): Promise<PartUpload> {
      const begun = await asked(Key, abort, () =>
        client.send(new CreateMultipartUploadCommand({ Bucket, Key }), { abortSignal: abort }),
      );
      const upload = { Bucket, Key, UploadId: begun.UploadId };
      const parts = new Map<number, string | undefined>();
      let bytes = 0;
      let wasAsked = false;
      const isWhole = async (abortSignal: AbortSignal) => {
        const { ContentLength } = await client.send(new HeadObjectCommand({ Bucket, Key }), { abortSignal });
        return ContentLength === bytes;
      };
      return {
        part: (PartNumber, Body, signal) =>
          asked(Key, signal, async () => {
            const command = new UploadPartCommand({ ...upload, PartNumber, Body });
            const { ETag } = await client.send(command, { abortSignal: signal });
            if (!parts.has(PartNumber)) bytes += Body.length;
            parts.set(PartNumber, ETag);
          }),
        complete: (signal) =>
          asked(Key, signal, async () => {
            // Servers do not know an upload any longer that they have completed, and the answer may have been lost.
            if (wasAsked && (await isWhole(signal).catch(() => false))) return;
            wasAsked = true;
            const Parts = Array.from(parts, ([PartNumber, ETag]) => ({ PartNumber, ETag }));
            const command = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } });
            await client.send(command, { abortSignal: signal });
          }),
        async discard() {
          await client.send(new AbortMultipartUploadCommand(upload));
        },
      };
    },
    get: (Key, from, abort) =>
      asked(Key, abort, async () => {
        const Range = from === 0 ? undefined : `bytes=${from}-`;
        const command = new GetObjectCommand({ Bucket, Key, Range });
        const answer = await client.send(command, { abortSignal: abort }).catch((error: unknown) => {
          // All of it had arrived when the connection broke.
          if (from > 0 && factsOf(error).status === 416) return { Body: [] };
          throw error;
        });
        return contentOf(answer.Body as AsyncIterable<Uint8Array>, (error) => {
          abort.throwIfAborted();
          return explained(error, spec, Key);
        });
      }),
    close: () => client.destroy(),
  };
}

async function* contentOf(
  body: AsyncIterable<Uint8Array>,
  explain: (error: unknown) => ArtifactStoreError,
): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw explain(error);
  }
}

/** Of certificates that are not trusted: the same answer comes each time. */
const certificateCode = /CERT|TLS|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/;
/** What servers call a request that came too fast or took too long. */
const busyNames: ReadonlySet<string> = new Set([
  'SlowDown',
  'RequestTimeout',
  'ThrottlingException',
  'InternalError',
]);

/** What went wrong, told apart by what a user has to do about it. */
function explained(error: unknown, spec: StoreSpec, key: string): ArtifactStoreError {
  const { bucket } = objectPlaceOf(spec.url);
  const where = spec.endpoint ?? `Amazon S3 (${spec.region})`;
  const { name, code, status } = factsOf(error);
  const answer = `${name}${status === null ? '' : `, HTTP ${status}`}`;
  const options = { cause: error };
  const refused = (message: string) => new ArtifactStoreError('refused', message, options);
  if (name === 'NoSuchBucket')
    return refused(
      `the store at ${where} has no bucket ${bucket}: create it, or correct url under artifacts`,
    );
  if (name === 'NoSuchKey' || (status === 404 && name !== 'NoSuchUpload'))
    return new ArtifactStoreError(
      'missing',
      `s3://${bucket}/${key} is not in the store at ${where}`,
      options,
    );
  if (name === 'InvalidAccessKeyId' || name === 'SignatureDoesNotMatch')
    return refused(
      `the store at ${where} does not accept the key in secret ${spec.secret} (${answer}): ` +
        'set the secret again with ACCESS_KEY_ID:SECRET_ACCESS_KEY as its value',
    );
  if (name === 'RequestTimeTooSkewed')
    return refused(
      `the store at ${where} refuses the time of this node (${answer}): set the clock of the node`,
    );
  if (name === 'PermanentRedirect' || name === 'AuthorizationHeaderMalformed' || status === 301)
    return refused(
      `bucket ${bucket} is not in the region ${spec.region} (${answer}): correct region under artifacts`,
    );
  if (status === 401 || status === 403)
    return refused(
      `the store at ${where} does not let the key in secret ${spec.secret} use s3://${bucket}/${key} (${answer}): ` +
        'allow it to read and write objects of the bucket',
    );
  if (code !== null && certificateCode.test(code))
    return refused(
      `the certificate of ${where} is not trusted (${code}): name its CA with NODE_EXTRA_CA_CERTS in the environment of the agent`,
    );
  const isBusy = status === null || status >= 500 || status === 429 || status === 408 || busyNames.has(name);
  if (isBusy) {
    const why = status === null ? (code ?? messageOf(error)) : answer;
    const remedy = 'check endpoint under artifacts, and that this node reaches it';
    return new ArtifactStoreError(
      'unreachable',
      `the store at ${where} cannot be used (${why}): ${remedy}`,
      options,
    );
  }
  return refused(
    `the store at ${where} refuses a request for s3://${bucket}/${key} (${answer}): ${messageOf(error)}`,
  );
}

function factsOf(error: unknown): {
  readonly name: string;
  readonly code: string | null;
  readonly status: number | null;
} {
  if (!(error instanceof Error)) return { name: 'Error', code: null, status: null };
  const { code, $metadata: metadata } = error as { readonly code?: unknown; readonly $metadata?: unknown };
  const status = isMapping(metadata) ? metadata['httpStatusCode'] : undefined;
  return {
    name: error.name,
    code: typeof code === 'string' ? code : null,
    status: typeof status === 'number' ? status : null,
  };
}
