/** A client of the HTTP API, for tests. */
import type { TestCoordinator } from '../coordinatorFixture.ts';
import type { ProblemDetails } from './problems.ts';

export interface Answered {
  readonly status: number;
  readonly type: string | null;
  readonly headers: Headers;
  /** What the body says as JSON. null: it is none. */
  readonly json: unknown;
  readonly text: string;
}

/** @param request a method and a path below `/api/v1` */
export async function ask(
  { apiUrl, adminToken }: Pick<TestCoordinator, 'apiUrl' | 'adminToken'>,
  request: string,
  options: {
    readonly body?: unknown;
    /** null: none. Default: the admin's. */
    readonly token?: string | null;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Answered> {
  const [method = '', path = ''] = request.split(' ');
  const { body, token = adminToken, headers = {} } = options;
  const answer = await fetch(`${apiUrl}/api/v1${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  const type = answer.headers.get('content-type');
  const json = type?.includes('json') === true ? (JSON.parse(text) as unknown) : null;
  return { status: answer.status, type, headers: answer.headers, json, text };
}

export function problemIn({ json }: Answered): ProblemDetails {
  return json as ProblemDetails;
}
