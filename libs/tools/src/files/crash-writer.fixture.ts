// A process of its own that writes until it is killed: `node crash-writer.fixture.ts ROOT WORK`. It says when it has begun.
import { contextOf } from './files-context.fixture.ts';
import { filesProvider } from './files-provider.ts';

const [root = '', work = '', ...ids] = process.argv.slice(2);
const provider = filesProvider({ root });
const act = async (action: string, path: readonly string[], input: object) => {
  const context = contextOf();
  const resource = { namespace: 'files', path: [...path], owner: context.owner };
  return provider.invoke({ operationId: 'op', context, resource, action, input: { ...input } }, new AbortController().signal);
};

const WORK: Readonly<Record<string, (round: number) => Promise<unknown>>> = {
  replace: (round) => act('replace', ['a.txt'], { content: `${round % 10}`.repeat(300_000) }),
  restore: (round) => act('snapshot:restore', ['tree'], { snapshotId: ids[round % 2] }),
  append: async (round) => {
    const result = await act('append', ['log'], { content: `${process.pid} ${round}\n` });
    if (result.status === 'succeeded') process.stdout.write(`${process.pid} ${round}\n`);
  },
};

process.stdout.write('begun\n');
for (let round = 0; ; round += 1) await WORK[work]?.(round);
