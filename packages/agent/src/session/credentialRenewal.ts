/**
 * The credential in use. The coordinator asks for another one long before it expires: this makes a secret, stores it beside
 * the one in use, and offers it; once it is taken, it is stored as the one to use, and only then the coordinator is informed that
 * the earlier one may end. Wherever that is cut off, what is stored is valid, and the next request goes on from it.
 */
import { type CredentialFile, newSecret, type StoredCredential } from './credential.ts';

export class CredentialRenewal {
  private readonly file: CredentialFile;
  private stored: StoredCredential;
  /** Which of `candidates` is shown. */
  private shown = 0;

  /** @param stored as the file holds it */
  constructor(file: CredentialFile, stored: StoredCredential) {
    this.file = file;
    this.stored = stored;
  }

  /** The secret to show. */
  current(): string {
    const candidates = this.candidates();
    return candidates[this.shown % candidates.length] ?? '';
  }

  /** @returns what to offer to the coordinator; the same until it is taken */
  offer(): string {
    const next = this.stored.next ?? newSecret();
    if (this.stored.next !== next) this.store({ ...this.stored, next });
    return next;
  }

  /** The coordinator has taken what was offered. @returns false when nothing was */
  taken(): boolean {
    const { next } = this.stored;
    if (next == null) return false;
    this.use(next);
    return true;
  }

  /** The coordinator has let in the one that was shown. */
  welcomed(): void {
    if (this.shown > 0) this.use(this.current());
  }

  /**
   * The coordinator does not know the one that was shown. It may know another: the one that it never answered about, or,
   * restored from a backup, the one before.
   * @returns whether there is one that was not tried
   */
  refused(): boolean {
    this.shown += 1;
    if (this.shown < this.candidates().length) return true;
    this.shown = 0;
    return false;
  }

  private use(credential: string): void {
    this.shown = 0;
    if (this.stored.credential === credential) return;
    this.store({ ...this.stored, credential, joined: true, previous: this.stored.credential, next: null });
  }

  private candidates(): readonly string[] {
    const { credential, next, previous } = this.stored;
    return [credential, next, previous].filter((each) => each != null);
  }

  /** On disk first: what is shown is never forgotten by a crash. */
  private store(stored: StoredCredential): void {
    this.file.write(stored);
    this.stored = stored;
  }
}
