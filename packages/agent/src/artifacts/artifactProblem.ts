/** Something is wrong with an input or an output. The message names it, and the remedy where there is one. */
export class ArtifactProblem extends Error {
  override readonly name = 'ArtifactProblem';
}
