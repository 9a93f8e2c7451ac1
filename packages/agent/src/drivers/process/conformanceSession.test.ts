import { describeProcessDriver } from './conformanceFixture.ts';

describeProcessDriver('session');
