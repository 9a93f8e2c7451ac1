/** Who may use a cluster: users, what their role lets them do, and the projects that jobs belong to. */

/** What a call does, as far as a role or a token may allow it. */
export const verbs = ['read', 'submit', 'change', 'tokens', 'operate', 'administer'] as const;
export type Verb = (typeof verbs)[number];

export const roles = ['disabled', 'viewer', 'user', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

/**
 * What each role may do. Somebody who is `disabled` is known, and may do nothing, not even log in. `change` concerns jobs, `tokens`
 * one's own tokens, `operate` nodes and the jobs of everybody, and `administer` users, credentials and the store.
 */
export const verbsOf: Readonly<Record<Role, readonly Verb[]>> = {
  disabled: [],
  viewer: ['read', 'tokens'],
  user: ['read', 'submit', 'change', 'tokens'],
  operator: ['read', 'submit', 'change', 'tokens', 'operate'],
  admin: verbs,
};

export interface User {
  readonly name: string;
  readonly role: Role;
  /** Projects in which they submit jobs, and whose jobs they may stop. Operators and admins need none. */
  readonly projects: readonly string[];
  /** Wall clock. */
  readonly createdAtMs: number;
}

export interface Project {
  readonly name: string;
  /** Only the user of a job, operators and admins may read it. */
  readonly isPrivate: boolean;
}

/** What all that is submitted with a token may use, and with those that it was rotated to. null: not limited. */
export interface TokenBudget {
  /** In all, from the first job on. */
  readonly gpuHours: number | null;
  /** Of its jobs that have not ended together; so are `jobs`. */
  readonly gpus: number | null;
  readonly jobs: number | null;
  /** In all. */
  readonly jobsTotal: number | null;
  /** The highest priority. */
  readonly priority: number | null;
}

/** What was used of a budget. */
export interface BudgetUse {
  readonly gpuHours: number;
  readonly gpus: number;
  readonly jobs: number;
  readonly jobsTotal: number;
}

/** The budget of a token of a user. null: it has none. */
export interface BudgetView {
  readonly budget: TokenBudget | null;
  readonly usedBudget: BudgetUse | null;
}

/** What a token with a budget allows at most: whoever could make tokens could make one without a budget. */
export const budgetVerbs: readonly Verb[] = ['read', 'submit', 'change'];

/** Who makes a call, and what they may do. */
export interface CallerView {
  /** Of the credential, as events name it. */
  readonly id: string;
  /** `admin` or `user`. */
  readonly kind: string;
  readonly user: string;
  readonly role: Role;
  /** What the role and the token both allow. */
  readonly verbs: readonly Verb[];
  /** null: it has none. */
  readonly budget: TokenBudget | null;
  readonly used: BudgetUse | null;
}

/** What a token is limited to, beside what its user may do. */
export interface TokenScope {
  /** null: every project of its user. */
  readonly projects: readonly string[] | null;
  /** null: whatever its user may do. */
  readonly verbs: readonly Verb[] | null;
  /** Id of its budget. null: it has none. */
  readonly budget: string | null;
}

export const unlimitedScope: TokenScope = { projects: null, verbs: null, budget: null };

/** The project of a job that names none, and of a user who is added without one. */
export const defaultProject = 'default';

/** The user that the built-in admin token stands for. */
export const builtInAdmin = 'admin';

export const userNameForm =
  'a user name has 1 to 32 lower-case letters, digits, "_", "-" and ".", and begins with a letter or "_"';

/** Whether a text has the form of a user's name, which is also that of a Unix account. */
export function isUserName(text: string): boolean {
  return /^[a-z_][a-z0-9_.-]{0,31}$/.test(text);
}
