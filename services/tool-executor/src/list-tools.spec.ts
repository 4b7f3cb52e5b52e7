import { err, ok } from '@sharedos/contracts';
import { countingIds } from '@sharedos/testing';
import { ToolRegistry } from '@sharedos/tools';
import { describe, expect, it } from 'vitest';
import { CatalogueUnavailable } from './ledger-turn.ts';
import { listTools } from './list-tools.ts';
import type { Ports } from './ports.ts';
import { REVISION, alice, opened, toolThat, turnWorld } from './turn.fixture.ts';

const COUNT = 5_000;
const ASKED_AT_ONCE = 512;

/** An executor with many tools, of which every third may be discovered. */
const executor = (contextTools?: Ports['contextTools']) => {
  const registry = new ToolRegistry();
  for (let n = 0; n < COUNT; n += 1) registry.register(toolThat(`files.t${String(n).padStart(4, '0')}`));
  const asked: number[] = [];
  const ports = {
    registry,
    ...(contextTools === undefined ? {} : { contextTools }),
    rules: { toolNamespaces: ['files'] },
    ids: countingIds('id'),
    clock: () => Date.parse('2026-01-01T12:00:00Z'),
    audit: async () => ok(undefined),
    authority: {
      open: async () => ok(opened),
      reach: async (_: string, __: object, ceilings: readonly object[]) => {
        const before = asked.reduce((sum, count) => sum + count, 0);
        asked.push(ceilings.length);
        const discovered = ceilings.map((___, index) => ({ allowed: (before + index) % 3 === 0, reasonCode: 'no_matching_grant' }));
        return ok({ revision: REVISION, reach: { status: 'computed', reach: [] }, discovered });
      },
    },
  } as unknown as Ports;
  const delivery = { namespaceId: 'w1', rest: [], signal: new AbortController().signal, verb: 'tools.list', principal: alice } as const;
  const page = async (after?: string) => {
    asked.length = 0;
    const answer = await listTools(ports)({ purpose: 'p1', limit: 512, ...(after === undefined ? {} : { after }) }, delivery);
    return answer;
  };
  return { asked, page };
};

describe('listing five thousand tools', () => {
  it('goes page by page, and leaves none of them out', async () => {
    const { page, asked } = executor();
    const names: string[] = [];
    let after: string | undefined;
    do {
      const answer = await page(after);
      if (!answer.ok) throw new Error(answer.error.code);
      expect(answer.value.total).toBe(Math.ceil(COUNT / 3));
      expect(answer.value.tools.length).toBeLessThanOrEqual(512);
      names.push(...answer.value.tools.map(({ name }) => name));
      after = answer.value.next;
    } while (after !== undefined);
    expect(names).toHaveLength(Math.ceil(COUNT / 3));
    expect(new Set(names).size).toBe(names.length);
    expect(Math.max(...asked)).toBeLessThanOrEqual(ASKED_AT_ONCE);
  });

  it('tells of none of them where those of their owner are not known', async () => {
    const { page } = executor(async () => err('authority_unavailable'));
    expect(await page()).toMatchObject({ ok: false, error: { code: 'tool_catalog_unavailable', retryable: true } });
  });
});

describe('the catalogue of a turn', () => {
  it('asks for what may be discovered in questions of a bounded size', async () => {
    const sizes: number[] = [];
    const tools = Array.from({ length: 1_300 }, (_, n) => toolThat(`files.t${n}`));
    const world = await turnWorld({ tools, reaches: (count) => (sizes.push(count), undefined) });
    await world.begin();
    expect(sizes).toEqual([512, 512, 276]);
  });

  it('is refused whole where it could not be put together, or would hold more than a catalogue may', async () => {
    const world = await turnWorld({ isListable: false });
    await expect(world.begin()).rejects.toThrow(CatalogueUnavailable);
  });
});
