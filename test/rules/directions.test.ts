/** Keeps the folders of each package in layers: a folder imports only what its row names. */
import { expect, test } from 'vitest';
import { expectNone, importsOf, productFiles, resolveImport, type SourceFile } from './source.ts';

/** A folder directly below a package's src, or a file there; what it may import of the same package; and why no more. */
type Row = readonly [folder: string, mayImport: string, why: string];

/** Lowest first: a row may name only rows above it. Files of the cli's src are in layers of their own, without a row. */
const directions: Readonly<Record<string, readonly Row[]>> = {
  agent: [
    [
      'taskFacts',
      '',
      'every folder speaks of tasks in these types, so an import from here would close a circle',
    ],
    ['probes', '', 'each probe is a process of its own, which loads nothing else'],
    ['host', '', 'it reads the machine, whoever asks'],
    ['dataDir', '', 'it locks files and knows nothing of what they hold'],
    ['leaving', '', 'it watches the machine, not its tasks'],
    ['service', '', 'it talks to systemd alone'],
    ['nodeOptions.ts', '', 'whoever starts an agent reads it before the agent is loaded'],
    ['fence', 'host taskFacts', 'a fence must hold whatever has started the task'],
    ['logs', 'taskFacts', 'it reads files of tasks, whoever writes them'],
    ['secrets', 'taskFacts', 'it keeps what it is given, in memory'],
    ['artifacts', '', 'it moves files to and from a store, whoever asks'],
    [
      'guard',
      'dataDir fence logs probes taskFacts',
      'it is a process that outlives the agent: it knows no driver',
    ],
    [
      'drivers',
      'fence guard host logs probes taskFacts',
      'a driver runs what it is given and decides nothing',
    ],
    ['options.ts', 'drivers guard taskFacts', 'defaults stand where they are used'],
    ['gpus', 'fence host options.ts', 'GPUs are read for the node, not for a task'],
    ['launch', 'drivers host taskFacts', 'the environment is computed before anything runs'],
    ['leases', 'drivers fence taskFacts', 'a lease says how long a task may run, not what it does'],
    [
      'checkpoints',
      'drivers launch host probes taskFacts',
      'it reads directories and reports to whoever calls it',
    ],
    ['health', 'checkpoints gpus host', 'conditions follow from readings'],
    ['telemetry', 'gpus taskFacts', 'it may be lost, so nothing depends on it'],
    ['metrics', 'gpus host', 'the page shows readings that others have made'],
    ['training', 'gpus logs taskFacts', 'it reads the output of a task and reports to whoever calls it'],
    ['failure', 'drivers fence guard health host taskFacts', 'it explains an end that others have seen'],
    ['rendezvous', 'drivers launch host taskFacts', 'it tests paths for a task that others prepare'],
    [
      'doctor',
      'checkpoints fence gpus health host options.ts probes',
      'it looks at the machine without running an agent',
    ],
    [
      'node',
      'checkpoints gpus health host metrics options.ts probes telemetry',
      'the state of the node, not of tasks',
    ],
    [
      'tasks',
      'artifacts checkpoints drivers failure gpus launch host leases logs node rendezvous secrets taskFacts training',
      'it knows what to do, and not who has asked for it over which connection',
    ],
    [
      'leftContainers.ts',
      'dataDir drivers fence taskFacts tasks',
      'it ends what an agent has left that is gone, and starts nothing',
    ],
    ['session', 'leases node taskFacts tasks', 'it turns messages into orders and reports'],
    ['agent.ts', 'leases leaving node session tasks', 'it wires an agent on ports, whatever is behind them'],
    [
      'observers.ts',
      'agent.ts checkpoints failure host launch node options.ts probes secrets tasks training',
      'it watches a real machine for the agent',
    ],
    [
      'main.ts',
      'agent.ts checkpoints dataDir drivers host launch leases leaving observers.ts options.ts probes rendezvous secrets session tasks',
      'it opens the ports of a real machine',
    ],
  ],
  coordinator: [
    ['model.ts', '', 'every folder speaks of jobs and nodes in these types'],
    ['caller.ts', '', 'it only names who has asked'],
    ['work', '', 'how work is run, whatever it is'],
    ['options.ts', '', 'the command line sets it, and every part may read it'],
    ['prices.ts', 'model.ts options.ts', 'what GPUs cost, whoever wants to know'],
    ['diskReserve.ts', '', 'it looks at the disk alone'],
    ['http', '', 'it serves the pages that it is given'],
    ['tls', '', 'it keeps certificates and knows no calls'],
    ['scheduler', '', 'it plans on values of its own'],
    ['explain', 'scheduler', 'sentences from the data that decisions were made on, for whoever asks'],
    ['spec', 'model.ts', 'the specs of jobs as others need them'],
    ['lifecycle', 'model.ts spec', 'what follows from an event depends on the job alone'],
    ['store', 'caller.ts model.ts spec work', 'it keeps what it is given and decides nothing'],
    [
      'state',
      'caller.ts lifecycle model.ts scheduler spec store',
      'it is changed by commands and knows none',
    ],
    ['upkeep', 'state tls', 'it tells what will run out, whoever shows it'],
    ['events', 'model.ts store work', 'it reads what is committed'],
    ['paths', 'model.ts state store', 'it remembers measurements of paths'],
    ['leases', 'model.ts state store', 'it says who may run, and ends nothing by itself'],
    ['auth', 'caller.ts state store tls', 'it knows credentials, not what is called with them'],
    [
      'alerts',
      'auth caller.ts model.ts spec state',
      'what follows from a condition depends on what is known alone',
    ],
    [
      'agents',
      'caller.ts leases lifecycle model.ts spec state work',
      'what a node should do follows from the state alone',
    ],
    ['planning', 'lifecycle model.ts scheduler state', 'it shows the state to the scheduler'],
    [
      'commands',
      'agents alerts auth caller.ts leases lifecycle model.ts spec state store',
      'functions on a draft: the loop runs them',
    ],
    [
      'loop.ts',
      'auth caller.ts explain model.ts planning scheduler state store work',
      'it runs whatever commands come',
    ],
    [
      'logs',
      'caller.ts diskReserve.ts loop.ts model.ts options.ts state work',
      'files of output, whoever sends or reads them',
    ],
    ['clock', 'caller.ts leases loop.ts state', 'it reads clocks, whatever is decided by them'],
    ['secrets', 'caller.ts commands loop.ts store', 'it encrypts and decrypts, whoever asks'],
    ['rows', 'diskReserve.ts options.ts state work', 'files of metrics, whoever sends or reads them'],
    [
      'outputEnds',
      'agents logs model.ts rows state',
      'it says what is complete; what follows from that is for others',
    ],
    ['telemetry', 'model.ts state', 'it may be lost, so nothing depends on it'],
    ['metricQuery', '', 'plain functions on a question and on series'],
    ['prometheus', '', 'it asks another program, whoever wants to know'],
    [
      'reconcilers',
      'agents auth caller.ts commands leases lifecycle logs loop.ts model.ts options.ts rows state store work',
      'periodic work commands like a client, and knows no calls',
    ],
    [
      'views.ts',
      'agents lifecycle model.ts reconcilers spec state',
      'what is shown, in whichever answer, page or file',
    ],
    [
      'alertWatch',
      'agents alerts caller.ts commands loop.ts model.ts spec state store telemetry views.ts work',
      'it looks at what is known, and commands like a client',
    ],
    ['tracing', 'events model.ts options.ts store', 'it tells a collector what was committed'],
    [
      'sweeps',
      'alerts commands loop.ts outputEnds rows state store work',
      'it looks at what is stored, and commands like a client',
    ],
    [
      'pipelines',
      'agents alerts commands leases logs loop.ts outputEnds secrets state store sweeps work',
      'it looks at what is stored, and commands like a client',
    ],
    [
      'triggers',
      'alerts auth caller.ts commands loop.ts model.ts pipelines state store work',
      'it looks at what is stored, and commands like a client',
    ],
    [
      'evaluations',
      'caller.ts commands loop.ts model.ts outputEnds spec state store work',
      'it looks at what is stored, and commands like a client',
    ],
    [
      'phases',
      'alerts caller.ts lifecycle loop.ts model.ts outputEnds state store work',
      'it looks at what is stored, and commands like a client',
    ],
    [
      'runners.ts',
      'agents evaluations outputEnds phases pipelines rows sweeps triggers',
      'it wires what brings stored work forward',
    ],
    ['alertSinks', 'events model.ts state', 'it tells others what was committed'],
    ['metricStream', 'metricQuery rows telemetry work', 'it tells what has arrived, to whichever call asks'],
    [
      'rpc',
      'agents alertWatch alerts auth caller.ts clock commands diskReserve.ts events explain leases lifecycle logs loop.ts metricQuery ' +
        'metricStream model.ts paths phases pipelines prometheus reconcilers rows scheduler secrets state store sweeps telemetry tls ' +
        'triggers views.ts work',
      'it translates calls',
    ],
    ['api', 'auth caller.ts events logs rpc tls', 'it is another way to the same calls'],
    [
      'metrics',
      'agents alertSinks auth clock lifecycle model.ts options.ts planning prices.ts reconcilers rpc state store telemetry tracing ' +
        'views.ts work',
      'it counts what others do',
    ],
    [
      'training',
      'agents events explain model.ts scheduler spec state store telemetry views.ts work',
      'it writes files from the views that the API returns',
    ],
    [
      'output.ts',
      'clock diskReserve.ts logs loop.ts options.ts reconcilers rows state store training upkeep work',
      'it connects what is kept in files, which the simulation has no disk for',
    ],
    [
      'coordinator.ts',
      'agents alertWatch alerts auth clock diskReserve.ts events leases loop.ts metricStream metrics output.ts paths planning prices.ts ' +
        'prometheus reconcilers rpc runners.ts secrets state store telemetry training triggers work',
      'it connects the parts on ports, and touches no machine',
    ],
    [
      'main.ts',
      'alertSinks api auth clock coordinator.ts diskReserve.ts events http leases logs metrics options.ts output.ts prometheus reconcilers rows ' +
        'rpc secrets state store tls tracing triggers upkeep work',
      'it brings the ports of a machine',
    ],
  ],
  cli: [
    ['output', '', 'it writes text, whatever the text is about'],
    ['metrics', 'output', 'how metrics are shown'],
    ['nodes', 'output', 'how nodes are shown'],
    ['alerts', 'output', 'how alerts are shown'],
    ['sweeps', 'output', 'how sweeps are shown'],
    ['pipelines', 'output', 'how pipelines are shown'],
    ['advise', 'output', 'how advice is shown'],
    ['completion', 'output', 'it runs at every press of Tab, and loads as little as it can'],
    ['submit', 'output', 'from flags and files to a spec, without a connection'],
    ['logs', 'output', 'it prints the output of a job, whoever waits for the job'],
    ['jobs', 'logs output', 'one job: shown, waited for, followed'],
    ['metricQuestion', 'jobs metrics output', 'one metric, of whatever it is asked, once or as it arrives'],
    ['arrays', 'jobs logs output', 'many jobs are made of single ones'],
    ['diagnose', 'jobs logs output', 'it explains a log, of a job or of a file'],
    ['config', '', 'a file of settings is read for whichever daemon has these flags'],
    [
      'install',
      'config output',
      'it changes a machine step by step, whatever the steps are for, and reads where its tasks run',
    ],
    ['doctor', 'config nodes output', 'it looks at this machine'],
    ['supervisor', 'jobs output', 'it starts and ends daemons'],
    [
      'userAgent',
      'config install output supervisor',
      'it installs an agent that is kept running like `muster up`, and ends tasks as `uninstall` does',
    ],
    ['automl', 'jobs output submit', 'it submits jobs and waits for them'],
    ['remote', 'arrays output', 'it works on several machines, and prints what became of them'],
    ['upgrade', 'install output remote', 'it puts one release in the place of another, here and on nodes'],
    ['top', 'jobs nodes output', 'it shows what jobs and nodes do now'],
    [
      'commands',
      'advise alerts arrays automl config diagnose doctor install jobs logs metricQuestion metrics nodes output pipelines remote ' +
        'submit supervisor sweeps top upgrade userAgent',
      'a command connects the parts; nothing imports a command but the table of them',
    ],
  ],
};

interface Edge {
  readonly package: string;
  readonly from: string;
  readonly to: string;
  readonly place: string;
}

/** Imports between folders of one package, types included; `from` and `to` are folders or files directly in its src. */
function edgesOf(files: readonly SourceFile[]): readonly Edge[] {
  return files.flatMap(({ path, text }) => {
    const source = placeOf(path);
    if (source === null || isFixture(path)) return [];
    return importsOf(text).flatMap(({ specifier, line }) => {
      const target = resolveImport(path, specifier);
      const to = target === null ? null : placeOf(target);
      if (target === null || to === null || isFixture(target)) return [];
      if (to.package !== source.package || to.folder === source.folder) return [];
      const place = `${path}:${line}`;
      return { package: source.package, from: source.folder, to: to.folder, place };
    });
  });
}

function placeOf(path: string): { readonly package: string; readonly folder: string } | null {
  const [, name, folder] = /^packages\/(\w+)\/src\/([^/]+)/.exec(path) ?? [];
  return name === undefined || folder === undefined ? null : { package: name, folder };
}

function isFixture(path: string): boolean {
  return path.endsWith('Fixture.ts') || path.includes('/testing/') || path.includes('/gen/');
}

function problemsOf(edges: readonly Edge[], tables: Readonly<Record<string, readonly Row[]>>): string[] {
  return Object.entries(tables).flatMap(([name, rows]) => {
    const isListed = new Map(rows.map(([folder, mayImport]) => [folder, new Set(mayImport.split(' '))]));
    const own = edges.filter((edge) => edge.package === name);
    const strays = own.flatMap(({ from, to, place }) => {
      const row = rows.find(([folder]) => folder === from);
      if (row === undefined) {
        return from.endsWith('.ts') && name === 'cli' ? [] : [`${place}: ${name}/${from} has no row`];
      }
      if (isListed.get(from)?.has(to) === true) return [];
      return to.endsWith('.ts') && name === 'cli'
        ? []
        : [`${place}: ${name}/${from} must not import ${to}: ${row[2]}`];
    });
    const unused = rows.flatMap(([folder, mayImport]) =>
      mayImport
        .split(' ')
        .filter((to) => to !== '' && !own.some((edge) => edge.from === folder && edge.to === to))
        .map((to) => `the table lets ${name}/${folder} import ${to}, and it does not`),
    );
    const upward = rows.flatMap(([folder, mayImport], index) =>
      mayImport
        .split(' ')
        .filter((to) => to !== '' && !rows.slice(0, index).some(([lower]) => lower === to))
        .map((to) => `the table lets ${name}/${folder} import ${to}, which is not above it in the table`),
    );
    return [...strays, ...unused, ...upward];
  });
}

/** Folders that import each other, directly or over others, as `a → b → a`. One for each package at most. */
function cyclesOf(edges: readonly Edge[]): string[] {
  return [...Map.groupBy(edges, (edge) => edge.package)].flatMap(([name, own]) => {
    const targets = new Map<string, Set<string>>();
    for (const { from, to } of own) targets.set(from, (targets.get(from) ?? new Set()).add(to));
    const done = new Set<string>();
    const search = (folder: string, path: readonly string[]): readonly string[] | null => {
      if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
      if (done.has(folder)) return null;
      for (const next of targets.get(folder) ?? []) {
        const found = search(next, [...path, folder]);
        if (found !== null) return found;
      }
      done.add(folder);
      return null;
    };
    for (const folder of targets.keys()) {
      const found = search(folder, []);
      if (found !== null) return [`${name}: ${found.join(' → ')}`];
    }
    return [];
  });
}

test('the checkers see a stray import, a row that is not used, and a circle', () => {
  const file = (path: string, imported: string): SourceFile => ({
    path: `packages/agent/src/${path}`,
    text: `import type { X } from '${imported}';`,
  });
  const edges = edgesOf([
    file('low/a.ts', '../high/b.ts'),
    file('high/b.ts', '../main.ts'),
    file('high/bFixture.ts', '../low/a.ts'),
    file('main.ts', './low/a.ts'),
    file('low/c.ts', './a.ts'),
  ]);
  const rows: readonly Row[] = [
    ['low', '', 'it knows nothing'],
    ['high', 'low main.ts', 'it knows much'],
  ];
  expect(problemsOf(edges, { agent: rows })).toEqual([
    'packages/agent/src/low/a.ts:1: agent/low must not import high: it knows nothing',
    'packages/agent/src/main.ts:1: agent/main.ts has no row',
    'the table lets agent/high import low, and it does not',
    'the table lets agent/high import main.ts, which is not above it in the table',
  ]);
  expect(cyclesOf(edges)).toEqual(['agent: low → high → main.ts → low']);
});

test('folders import only what they may', () => {
  expectNone(
    problemsOf(edgesOf(productFiles()), directions),
    'A folder can be understood without those above it in the table. A new import needs a reason, and a place in it.',
  );
});

test('no folders of a package import each other in a circle', () => {
  expectNone(cyclesOf(edgesOf(productFiles())), 'In a circle none can be understood without all the others.');
});
