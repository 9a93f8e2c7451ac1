/** Texts of steps with the placeholders of Kubeflow. Pure. */
import type { PieceText, TextPiece } from './stepTexts.ts';

/** The parameter that is the item of a step with `for_each`. */
export const itemName = 'item';

export function placeholderText(text: PieceText): string {
  return text.map(placeholder).join('');
}

function placeholder(piece: TextPiece): string {
  switch (piece.kind) {
    case 'text':
      return escapedForKubernetes(piece.text);
    case 'param':
      return `{{$.inputs.parameters['${piece.name}']}}`;
    case 'item':
      return `{{$.inputs.parameters['${itemName}']}}`;
    case 'input':
      return `{{$.inputs.artifacts['${piece.name}'].path}}`;
    default:
      return `{{$.outputs.artifacts['${piece.output.name}'].path}}`;
  }
}

/** Kubernetes replaces `$(NAME)` in commands and variables, and makes `$` of `$$`. */
function escapedForKubernetes(text: string): string {
  return text.replaceAll(/\$\$|\$(?=\([A-Za-z_][A-Za-z0-9_.-]*\))/g, (found) =>
    found === '$$' ? '$$$$' : '$$',
  );
}
