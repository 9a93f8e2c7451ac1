import { describeProcessDriver } from './conformanceFixture.ts';

describeProcessDriver('cgroup2');
