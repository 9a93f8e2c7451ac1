/** What is used of the library, which has no types of its own. */
declare module 'nodemailer' {
  interface Transport {
    sendMail(message: {
      readonly from: string;
      readonly to: readonly string[];
      readonly subject: string;
      readonly text: string;
      readonly messageId: string;
      readonly headers: Readonly<Record<string, string>>;
    }): Promise<unknown>;
    close(): void;
  }

  export function createTransport(options: {
    readonly host: string;
    readonly port: number;
    /** TLS from the first byte. */
    readonly secure: boolean;
    /** The server must offer STARTTLS. */
    readonly requireTLS: boolean;
    readonly tls: { readonly servername: string; readonly ca?: readonly string[] };
    readonly auth?: { readonly user: string; readonly pass: string };
    readonly connectionTimeout: number;
    readonly greetingTimeout: number;
    readonly socketTimeout: number;
    readonly disableFileAccess: true;
    readonly disableUrlAccess: true;
  }): Transport;
}
