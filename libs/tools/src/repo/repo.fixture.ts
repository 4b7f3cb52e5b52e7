import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObj, ToolResult } from '@sharedos/contracts';
import { instantOf } from '@sharedos/contracts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { AT, type Asking, FilesWorld, contextOf } from '../files/files.fixture.ts';
import { repoProvider } from './repo-provider.ts';
import { repoTools } from './repo-tools.ts';

const ajv = new Ajv2020({ formats: { 'date-time': (text: string) => instantOf(text) !== undefined } });

/** A repository `project` of maren, made with the git of the machine, and the tools over it. */
export class RepoWorld extends FilesWorld {
  readonly project = join(this.folder(), 'project');

  constructor() {
    super();
    mkdirSync(this.project);
    this.git('init', '-q', '-b', 'main', '.');
  }

  git(...args: readonly string[]): string {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    const identity = ['-c', 'user.name=host', '-c', 'user.email=host@example.invalid'];
    return execFileSync('git', [...identity, ...args], { cwd: this.project, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.project, path)), { recursive: true });
    writeFileSync(join(this.project, path), content);
  }

  /** Asks a tool about `project`, or about another path; every success must fit the published output. */
  async ask(verb: string, rest: JsonObj = {}, path: readonly string[] = ['project'], asking: Asking = {}): Promise<ToolResult> {
    const provider = repoProvider({ root: this.root, now: () => Date.parse(AT) });
    const tool = repoTools(provider).find(({ definition }) => definition.name === `repo.${verb}`);
    if (tool === undefined) throw new Error(`no tool repo.${verb}`);
    const { name } = tool.definition;
    const call = { id: 'call-1', tool: name, arguments: tool.parseArguments({ path, ...rest }) as JsonObj, traceId: 't', requestedAt: AT };
    const result = await tool.invoke(contextOf(asking), call, asking.cancel ?? new AbortController().signal);
    if (result.status === 'succeeded') {
      const fits = ajv.compile(tool.definition.outputSchema as object);
      expect(fits(result.output), JSON.stringify(fits.errors)).toBe(true);
    }
    return result;
  }
}

/** Every tool of the plane. */
export const EVERY_REPO: readonly (readonly [string, JsonObj])[] = [
  ['status', {}],
  ['diff', {}],
  ['diff', { staged: true }],
  ['log', {}],
  ['stage', { pathspec: [['a.txt']] }],
  ['commit', { message: 'mine' }],
];
