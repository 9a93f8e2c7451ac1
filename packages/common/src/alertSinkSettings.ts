/** Where alerts go, as the flags of the coordinator say it. Files are read by the CLI. */

export interface AlertSinkSettings {
  readonly webhook: { readonly url: string; readonly secret: string | null } | null;
  /** An incoming webhook; its path is a password. */
  readonly slackUrl: string | null;
  /** Without `/api/v2/alerts`. */
  readonly alertmanagerUrl: string | null;
  readonly mail: {
    readonly url: string;
    readonly from: string;
    readonly to: readonly string[];
    /** `user:password`. null: none. */
    readonly credentials: string | null;
  } | null;
  /** http, and addresses of private networks. */
  readonly allowsPrivate: boolean;
  /** PEM: certificate authorities that are trusted beside the public ones. null: none. */
  readonly ca: string | null;
}

export const noAlertSinks: AlertSinkSettings = {
  webhook: null,
  slackUrl: null,
  alertmanagerUrl: null,
  mail: null,
  allowsPrivate: false,
  ca: null,
};

export function hasSinks({ webhook, slackUrl, alertmanagerUrl, mail }: AlertSinkSettings): boolean {
  return [webhook, slackUrl, alertmanagerUrl, mail].some((each) => each !== null);
}
