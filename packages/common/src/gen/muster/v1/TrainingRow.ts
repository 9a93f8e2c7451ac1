// Original file: proto/muster/v1/agent.proto

import type { Long } from '@grpc/proto-loader';

export interface TrainingRow {
  'position'?: (number | string | Long);
  'atMs'?: (number | string | Long);
  'lossNotFinite'?: (boolean);
  'step'?: (number | string);
  'trainLoss'?: (number | string);
  'evalLoss'?: (number | string);
  'learningRate'?: (number | string);
  'gradNorm'?: (number | string);
  'epoch'?: (number | string);
  'stepSeconds'?: (number | string);
  'tokensPerSecond'?: (number | string);
  'samplesPerSecond'?: (number | string);
  'tokens'?: (number | string);
  'alsoNotFinite'?: (number);
  '_step'?: "step";
  '_trainLoss'?: "trainLoss";
  '_evalLoss'?: "evalLoss";
  '_learningRate'?: "learningRate";
  '_gradNorm'?: "gradNorm";
  '_epoch'?: "epoch";
  '_stepSeconds'?: "stepSeconds";
  '_tokensPerSecond'?: "tokensPerSecond";
  '_samplesPerSecond'?: "samplesPerSecond";
  '_tokens'?: "tokens";
}

export interface TrainingRow__Output {
  'position': (number);
  'atMs': (number);
  'lossNotFinite': (boolean);
  'step'?: (number);
  'trainLoss'?: (number);
  'evalLoss'?: (number);
  'learningRate'?: (number);
  'gradNorm'?: (number);
  'epoch'?: (number);
  'stepSeconds'?: (number);
  'tokensPerSecond'?: (number);
  'samplesPerSecond'?: (number);
  'tokens'?: (number);
  'alsoNotFinite': (number);
  '_step'?: "step";
  '_trainLoss'?: "trainLoss";
  '_evalLoss'?: "evalLoss";
  '_learningRate'?: "learningRate";
  '_gradNorm'?: "gradNorm";
  '_epoch'?: "epoch";
  '_stepSeconds'?: "stepSeconds";
  '_tokensPerSecond'?: "tokensPerSecond";
  '_samplesPerSecond'?: "samplesPerSecond";
  '_tokens'?: "tokens";
}
