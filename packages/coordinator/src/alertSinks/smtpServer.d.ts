/** What tests use of the library, which has no types of its own. */
declare module 'smtp-server' {
  import type { Server } from 'node:net';
  import type { Readable } from 'node:stream';

  interface Address {
    readonly address: string;
  }

  interface Session {
    readonly user: unknown;
    readonly envelope: { readonly mailFrom: Address | false; readonly rcptTo: readonly Address[] };
  }

  type Done = (error?: Error | null, answer?: { readonly user: string }) => void;

  export class SMTPServer {
    constructor(options: {
      readonly authOptional: boolean;
      readonly allowInsecureAuth: boolean;
      readonly disabledCommands: readonly string[];
      /** TLS from the first byte. */
      readonly secure: boolean;
      /** PEM. Absent: one of the library, that nobody trusts. */
      readonly key?: string;
      readonly cert?: string;
      onAuth(auth: { username: string; password: string }, session: Session, callback: Done): void;
      onRcptTo(address: Address, session: Session, callback: Done): void;
      onData(stream: Readable, session: Session, callback: Done): void;
    });
    readonly server: Server;
    on(event: 'error', listener: (error: Error) => void): void;
    listen(port: number, host: string, callback: () => void): void;
    close(callback: () => void): void;
  }
}
