/**
 * A pipeline as a DAG file of Airflow 3. The commands of steps are made by functions of the file at the start of each task, so that
 * values of parameters are quoted for the shell and never read as templates. Pure.
 */
import { needsOf } from '../file/graph.ts';
import type { PipelineSpec, PipelineStep } from '../model.ts';
import { pythonCondition, splitCondition } from './conditions.ts';
import { helpers, literal, paramText, podHelper, quoted } from './pythonText.ts';
import { type PieceText, piecesOf, type StepTexts, type TextPiece, textsOf } from './stepTexts.ts';
import { commonlyUnmapped, type UnmappedSetting, unmappedComment } from './unmapped.ts';

export interface AirflowExport {
  readonly text: string;
  readonly unmapped: readonly UnmappedSetting[];
}

const runId = 'run_id';

export function airflowDag(pipeline: PipelineSpec): AirflowExport {
  return new AirflowWriter(pipeline).write();
}

interface WrittenStep {
  readonly step: PipelineStep;
  /** Of its function and its variable; different steps have different ones. */
  readonly id: string;
  readonly texts: StepTexts;
  /** In Python. null: it has none, or none that maps. */
  readonly condition: string | null;
}

class AirflowWriter {
  private readonly pipeline: PipelineSpec;
  private readonly steps: readonly WrittenStep[];
  private readonly unmapped: UnmappedSetting[];

  constructor(pipeline: PipelineSpec) {
    this.pipeline = pipeline;
    this.unmapped = commonlyUnmapped(pipeline, () => false).filter(
      ({ step, key }) =>
        key !== 'job.workdir' || this.isPod(pipeline.steps.find(({ name }) => name === step)),
    );
    this.steps = pipeline.steps.map((step, index) => ({
      step,
      id: `step_${index + 1}_${step.name.replaceAll('-', '_')}`,
      texts: textsOf(pipeline, step),
      condition: this.conditionOf(step),
    }));
    for (const each of this.steps) this.nameRest(each);
  }

  write(): AirflowExport {
    const { steps, pipeline } = this;
    const uses = (part: string) => body.includes(part);
    const body = [
      ...steps.flatMap((each) => [...this.functionOf(each), '', '']),
      ...this.dag(),
      ...steps.flatMap((each) => this.operatorsOf(each).map(indented)),
      '',
      ...this.order().map(indented),
      '',
    ].join('\n');
    const imports = [
      ...(uses('timedelta(') ? ['from datetime import timedelta'] : []),
      ...(this.hasPods() ? ['import re'] : []),
      'import shlex',
      '',
      ...(uses('k8s.') ? ['from kubernetes.client import models as k8s'] : []),
      `from airflow.sdk import DAG${uses('Param(') ? ', Param' : ''}${uses('@task') ? ', task' : ''}`,
      ...(uses('KubernetesPodOperator')
        ? ['from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator']
        : []),
      ...(uses('BashOperator') ? ['from airflow.providers.standard.operators.bash import BashOperator'] : []),
      ...(uses('EmptyOperator')
        ? ['from airflow.providers.standard.operators.empty import EmptyOperator']
        : []),
      ...(uses('ShortCircuitOperator')
        ? ['from airflow.providers.standard.operators.python import ShortCircuitOperator']
        : []),
    ];
    const { artifacts } = pipeline;
    const root = this.expression(null, artifacts?.kind === 'directory' ? artifacts.path : '/tmp/artifacts');
    const head = `# Exported by muster pipeline export, for Airflow 3.\n${unmappedComment(this.unmapped)}`;
    const shared = `${helpers(root)}${this.hasPods() ? podHelper : ''}`;
    return {
      text: `${head}${imports.join('\n')}\n\n\n${shared}\n\n${body}`,
      unmapped: this.unmapped,
    };
  }

  private add(step: string | null, key: string, why: string): void {
    this.unmapped.push({ step, key, why });
  }

  private hasPods(): boolean {
    return this.steps.some(({ texts }) => texts.image !== null);
  }

  private isPod(step: PipelineStep | undefined): boolean {
    return step?.work.kind === 'job' && step.work.file['image'] !== undefined;
  }

  /** What does not map never holds. */
  private conditionOf(step: PipelineStep): string | null {
    if (step.when === null) return null;
    const { rest } = splitCondition(step.when, needsOf(step));
    if (rest === null) return null;
    const condition = pythonCondition(rest, this.pipeline.params);
    const why =
      'the condition asks for the state of a step, or is not the same in Python; the step never runs';
    if (condition === null) this.add(step.name, 'when', why);
    return condition ?? 'False';
  }

  /** Those that it waits for must have succeeded; else they may have been skipped, too. */
  private needsSuccess(step: PipelineStep): boolean {
    const { succeeded } = splitCondition(step.when ?? 'true', needsOf(step));
    return succeeded.length > 0 || step.inputs.some(({ kind }) => kind === 'output');
  }

  private nameRest({ step, texts: { resources, image } }: WrittenStep): void {
    const { name, cache, retries, outputs, group, timeoutMs, inputs, after, forEach } = step;
    if (cache !== null) this.add(name, 'cache', 'there is no cache of steps');
    if (timeoutMs !== null)
      this.add(name, 'timeout', 'it counts from the start of the task, without its time in the queue');
    if (retries > 0 && outputs.length > 0)
      this.add(name, 'retries', 'a retry writes to the same place as the try before it');
    if (group === 'on_failure')
      this.add(name, group, 'it starts as soon as a step has failed, not once all others have ended');
    const { succeeded } = splitCondition(step.when ?? 'true', after);
    if (this.needsSuccess(step) && after.length > succeeded.length)
      this.add(name, 'after', 'the step is also skipped when one of these was skipped');
    if (resources === null) this.add(name, 'job.resources', 'they depend on a parameter without a default');
    else if (image === null && (resources.gpus > 0 || resources.cpus !== null || resources.memoryMb !== null))
      this.add(
        name,
        'job.resources',
        'a step without an image runs on the worker of Airflow, with what is there',
      );
    if (image !== null && (outputs.length > 0 || inputs.length > 0))
      this.add(name, 'artifacts', 'the directory of artifacts must be mounted in its pod');
    if (image !== null && forEach !== null && image.some(({ kind }) => kind === 'item'))
      this.add(name, 'job.image', 'the image is the same for all items');
  }

  private functionOf({ step, id, texts }: WrittenStep): readonly string[] {
    const { command, env } = texts;
    const isMapped = step.forEach !== null;
    const head = `def ${id}(params, ${runId}${isMapped ? ', item, index' : ''}):`;
    if (command === null)
      return [head, `    return "echo ${step.name}: sweeps do not run in Airflow >&2; exit 1"`];
    const directories = step.outputs.map((output) => {
      const path = this.pieceExpression(step, { kind: 'output', output });
      return output.type === 'directory' ? path : `parent(${path})`;
    });
    return [
      head,
      '    return shell(',
      `        directories=[${directories.join(', ')}],`,
      '        env={',
      `            "MUSTER_PIPELINE": ${runId},`,
      ...[...env].map(
        ([name, text]) => `            ${quoted(name)}: ${this.textExpression(step, text, 'lines')},`,
      ),
      '        },',
      `        command=[${command.map((text) => this.argument(step, text)).join(', ')}],`,
      '    )',
    ];
  }

  /** A list alone in an argument is an argument for each of its values. */
  private argument(step: PipelineStep, text: PieceText): string {
    const [piece] = text;
    if (text.length === 1 && piece !== undefined && this.isList(piece))
      return `*[text(each) for each in ${this.pieceExpression(step, piece)}]`;
    return this.textExpression(step, text, 'words');
  }

  private isList(piece: TextPiece): boolean {
    if (piece.kind === 'input') return piece.source.forEach !== null;
    return (
      piece.kind === 'param' &&
      this.pipeline.params.some(({ name, type }) => name === piece.name && type === 'list')
    );
  }

  private textExpression(step: PipelineStep | null, pieces: PieceText, lists: 'lines' | 'words'): string {
    const parts = pieces.map((piece) => {
      const part = this.pieceExpression(step, piece);
      if (piece.kind === 'text' || piece.kind === 'output') return part;
      if (this.isList(piece)) return lists === 'lines' ? `text(${part}, "\\n")` : `text(${part})`;
      return piece.kind === 'input' ? part : `text(${part})`;
    });
    return parts.length === 0 ? '""' : parts.join(' + ');
  }

  private pieceExpression(step: PipelineStep | null, piece: TextPiece): string {
    switch (piece.kind) {
      case 'text':
        return quoted(piece.text);
      case 'param':
        return `params[${quoted(piece.name)}]`;
      case 'item':
        return 'item';
      case 'output': {
        const place =
          step?.forEach === null ? quoted(step.name) : `${quoted(`${step?.name ?? ''}.`)} + str(index)`;
        return this.path(step, place, piece.output.path);
      }
      default: {
        const { source, output } = piece;
        if (source.forEach === null) return this.path(source, quoted(source.name), output.path);
        const place = `${quoted(`${source.name}.`)} + str(at)`;
        return `[${this.path(source, place, output.path)} for at in range(len(${this.items(source)}))]`;
      }
    }
  }

  private path(step: PipelineStep | null, place: string, path: string): string {
    return `path(params, ${runId}, ${place}, ${this.expression(step, path)})`;
  }

  private items({ forEach }: PipelineStep): string {
    if (forEach !== null && 'parameter' in forEach) return `params[${quoted(forEach.parameter)}]`;
    return `[${(forEach ?? []).map(literal).join(', ')}]`;
  }

  /** Of a text in which only parameters stand. */
  private expression(step: PipelineStep | null, text: string): string {
    const [any] = this.pipeline.steps;
    const owner = step ?? any;
    if (owner === undefined) return quoted(text);
    return this.textExpression(owner, piecesOf(this.pipeline, owner, text), 'words');
  }

  private dag(): readonly string[] {
    const { name, params, parallel } = this.pipeline;
    const once = this.steps.filter(({ step }) => step.forEach === null).map(({ id }) => id);
    const macros = this.hasPods() ? ['pod', ...once] : once;
    return [
      'with DAG(',
      `    dag_id=${quoted(name)},`,
      '    schedule=None,',
      ...(parallel === null ? [] : [`    max_active_tasks=${parallel},`]),
      ...(params.length === 0
        ? []
        : [
            '    params={',
            ...params.map((each) => `        ${quoted(each.name)}: ${paramText(each)},`),
            '    },',
          ]),
      `    user_defined_macros={${macros.map((id) => `${quoted(id)}: ${id}`).join(', ')}},`,
      '):',
    ];
  }

  private operatorsOf(written: WrittenStep): readonly string[] {
    const { step, id, texts, condition } = written;
    const gate =
      condition === null
        ? []
        : [
            `${id}_when = ShortCircuitOperator(`,
            `    task_id=${quoted(`${step.name}.when`)},`,
            `    python_callable=lambda params: ${condition},`,
            `    trigger_rule=${quoted(this.ruleOf(step))},`,
            '    ignore_downstream_trigger_rules=False,',
            ')',
          ];
    const rule = condition === null ? this.ruleOf(step) : 'all_success';
    const isPod = texts.image !== null;
    const settings = [
      `task_id=${quoted(step.name)}`,
      `trigger_rule=${quoted(rule)}`,
      `retries=${step.retries}`,
      ...(step.timeoutMs === null ? [] : [`execution_timeout=timedelta(milliseconds=${step.timeoutMs})`]),
      ...(isPod ? this.podSettings(written) : this.processSettings(written)),
    ];
    const operator = isPod ? 'KubernetesPodOperator' : 'BashOperator';
    const lines = (all: readonly string[]) => all.map((each) => `    ${each},`);
    if (step.forEach === null) {
      const call = `${id}(params, ${runId})`;
      const command = `"{{ ${isPod ? `pod(${call})` : call} }}"`;
      const own = isPod ? `arguments=[${command}]` : `bash_command=${command}`;
      return [...gate, `${id}_task = ${operator}(`, ...lines([...settings, own]), ')'];
    }
    const entry = `${id}(params, ${runId}, item, index)`;
    const expanded = isPod ? `{"arguments": [pod(${entry})]}` : `{"bash_command": ${entry}}`;
    return [
      ...gate,
      `@task(task_id=${quoted(`${step.name}.items`)}, trigger_rule=${quoted(rule)})`,
      `def ${id}_items(params=None, ${runId}=None):`,
      `    return [${expanded} for index, item in enumerate(${this.items(step)})]`,
      `${id}_list = ${id}_items()`,
      `${id}_task = ${operator}.partial(`,
      ...lines(
        settings.map((each) => (each.startsWith('trigger_rule=') ? 'trigger_rule="all_success"' : each)),
      ),
      `).expand_kwargs(${id}_list)`,
    ];
  }

  private processSettings({ step, texts }: WrittenStep): readonly string[] {
    return [
      'append_env=True',
      ...(texts.workdir === null ? [] : [`cwd=${this.fixed(step, 'job.workdir', texts.workdir)}`]),
    ];
  }

  private podSettings({ step, texts: { image, resources } }: WrittenStep): readonly string[] {
    const limits = [
      ...(resources === null || resources.gpus === 0 ? [] : [`"nvidia.com/gpu": "${resources.gpus}"`]),
      ...(resources === null || resources.cpus === null ? [] : [`"cpu": "${resources.cpus}"`]),
      ...(resources === null || resources.memoryMb === null ? [] : [`"memory": "${resources.memoryMb}Mi"`]),
    ];
    return [
      `image=${this.fixed(step, 'job.image', image ?? [])}`,
      'cmds=["/bin/sh", "-c"]',
      ...(limits.length === 0
        ? []
        : [`container_resources=k8s.V1ResourceRequirements(limits={${limits.join(', ')}})`]),
    ];
  }

  /** A setting that is a template for Airflow, too. */
  private fixed({ name }: PipelineStep, key: string, text: PieceText): string {
    const parts = text.map((piece) => {
      if (piece.kind === 'param') return `{{ params[${JSON.stringify(piece.name)}] }}`;
      if (piece.kind !== 'text') return '';
      return piece.text.replaceAll('{', '{{ "{" }}');
    });
    if (text.some(({ kind }) => kind !== 'text' && kind !== 'param'))
      this.add(name, key, 'only parameters stand in it here');
    return quoted(parts.join(''));
  }

  /** A step after a skipped one runs; one that needs an output of a skipped one is skipped, too. */
  private ruleOf(step: PipelineStep): string {
    if (needsOf(step).length > 0) return this.needsSuccess(step) ? 'all_success' : 'none_failed';
    if (step.group === 'steps') return 'all_success';
    return step.group === 'on_failure' ? 'one_failed' : 'all_done';
  }

  /** The last task fails with any step, because Airflow judges a run by its last tasks alone. */
  private order(): readonly string[] {
    const { steps } = this;
    const first = ({ step, id, condition }: WrittenStep) =>
      condition !== null ? `${id}_when` : step.forEach === null ? `${id}_task` : `${id}_list`;
    const ofGroup = (group: PipelineStep['group']) => steps.filter(({ step }) => step.group === group);
    const before = {
      steps: [],
      on_failure: ofGroup('steps'),
      finally: [...ofGroup('steps'), ...ofGroup('on_failure')],
    };
    const lines = steps.flatMap((written) => {
      const { step, id, condition } = written;
      const needs = needsOf(step).flatMap((name) => steps.filter((each) => each.step.name === name));
      const upstream: readonly WrittenStep[] = needs.length > 0 ? needs : before[step.group];
      return [
        ...(upstream.length === 0
          ? []
          : [`[${upstream.map((each) => `${each.id}_task`).join(', ')}] >> ${first(written)}`]),
        ...(condition === null
          ? []
          : [`${id}_when >> ${step.forEach === null ? `${id}_task` : `${id}_list`}`]),
      ];
    });
    const judged = [...ofGroup('steps'), ...ofGroup('finally')].map(({ id }) => `${id}_task`);
    return [
      ...lines,
      'result = EmptyOperator(task_id="pipeline.result", trigger_rule="none_failed")',
      `[${judged.join(', ')}] >> result`,
    ];
  }
}

function indented(line: string): string {
  return line === '' ? '' : `    ${line}`;
}
