/** Calls under way, by the credential they were made with, so that its end is theirs. */

export type EndCall = () => void;

export class OpenCalls {
  private readonly byCredential = new Map<string, Set<EndCall>>();

  /** @returns to be called when the call is over */
  add(credentialId: string, end: EndCall): () => void {
    const calls = this.byCredential.get(credentialId) ?? new Set();
    this.byCredential.set(credentialId, calls);
    calls.add(end);
    return () => {
      calls.delete(end);
      if (calls.size === 0 && this.byCredential.get(credentialId) === calls)
        this.byCredential.delete(credentialId);
    };
  }

  count(credentialId: string): number {
    return this.byCredential.get(credentialId)?.size ?? 0;
  }

  /** Ends every call of a credential. */
  end(credentialId: string): void {
    const calls = this.byCredential.get(credentialId);
    this.byCredential.delete(credentialId);
    for (const end of calls ?? []) end();
  }
}
