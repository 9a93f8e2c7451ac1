/** What an examination of this machine found, for `muster doctor`. */

export interface DoctorReport {
  readonly checks: readonly DoctorCheck[];
}

export interface DoctorCheck {
  /** `GPU source`, `profiling`, `Docker`, `kernel log`, `disk` … groups lines of the report. */
  readonly area: string;
  /** What was looked at: `nvml`, `nvidia-smi`, `dcgm-exporter`, `/dev/kmsg` … */
  readonly name: string;
  readonly state:
    | 'ok'
    /** It is not here, and nothing is wrong with that. */
    | 'absent'
    | 'warning'
    | 'problem';
  /** The agent would use this one. */
  readonly chosen: boolean;
  /** One sentence. */
  readonly message: string;
  /** What was read; null: nothing worth showing. */
  readonly evidence: string | null;
  /** What to do about it; null: nothing. */
  readonly remedy: string | null;
}
