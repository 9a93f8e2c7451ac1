import { describeProcessDriver } from './conformanceFixture.ts';

describeProcessDriver('freezer');
