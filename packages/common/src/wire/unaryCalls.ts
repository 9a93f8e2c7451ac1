/** The calls of the API that have one answer, as types. */
import type { MethodDefinition } from '@grpc/proto-loader';
import type { MusterDefinition } from '../gen/muster/v1/Muster.ts';

/** Calls with one request and one answer, by the generated definition of the service. */
export type UnaryName = {
  [K in keyof MusterDefinition]: K extends
    | 'ReadLogs'
    | 'WatchEvents'
    | 'WatchMetrics'
    | 'BackupStore'
    | symbol
    | number
    ? never
    : K;
}[keyof MusterDefinition];
export type RequestOf<K extends UnaryName> =
  MusterDefinition[K] extends MethodDefinition<infer Request, infer _R, infer _RO, infer _O>
    ? Request
    : never;
export type ResponseOf<K extends UnaryName> =
  MusterDefinition[K] extends MethodDefinition<infer _Q, infer _R, infer _QO, infer Response>
    ? Response
    : never;

export type UnaryCall = <K extends UnaryName>(name: K, request: RequestOf<K>) => Promise<ResponseOf<K>>;
