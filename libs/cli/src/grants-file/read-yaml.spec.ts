import { describe, expect, it } from 'vitest';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { AssertionsFile } from './assertions-file.ts';
import { GrantsFile } from './grants-file.ts';
import { parseYaml } from './read-yaml.ts';

const whatIsWrong = (text: string, schema: Parameters<typeof parseYaml>[2] = GrantsFile): string => {
  try {
    parseYaml(text, '/somewhere/grants.yaml', schema);
  } catch (error) {
    expect(error).toBeInstanceOf(CommandFailure);
    expect((error as CommandFailure).exitCode).toBe(EXIT.usage);
    return (error as CommandFailure).message;
  }
  return expect.unreachable('it should have been refused');
};

const HEAD = 'version: 1\nname: team\ngrants:\n';
const grants = (...lines: string[]): string => HEAD + lines.map((line) => `${line}\n`).join('');

describe('a file of grants', () => {
  it.each<[string, string, RegExp]>([
    [
      'a principal of no kind',
      grants('  - id: a', '    to: scout', '    allow: [{ resource: "files:a", actions: [read] }]'),
      /^grants\.yaml:5: grants\[0\]\.to "scout" is not a principal/,
    ],
    [
      'a resource of no namespace',
      grants('  - id: a', '    to: agent:scout', '    allow:', '      - resource: notes', '        actions: [read]'),
      /^grants\.yaml:7: .*is not a resource/,
    ],
    [
      'a word it does not know',
      grants('  - id: a', '    to: agent:scout', '    until: tomorrow', '    allow: [{ resource: "files:a", actions: [read] }]'),
      /^grants\.yaml:6: grants\[0\]\.until is not known here/,
    ],
    [
      'a duration for a time',
      grants('  - id: a', '    to: agent:scout', '    expires: 12h', '    allow: [{ resource: "files:a", actions: [read] }]'),
      /^grants\.yaml:6: grants\[0\]\.expires /,
    ],
    ['something left out', grants('  - id: a', '    to: agent:scout'), /^grants\.yaml:4: grants\[0\]\.allow /],
    [
      'no actions',
      grants('  - id: a', '    to: agent:scout', '    allow: [{ resource: "files:a", actions: [] }]'),
      /^grants\.yaml:6: grants\[0\]\.allow\[0\]\.actions /,
    ],
    ['a member twice', 'version: 1\nversion: 1\n', /^grants\.yaml:2: /],
    ['broken YAML', 'version: [1\nname: x\n', /^grants\.yaml:\d: /],
    ['another version', 'version: 2\nname: team\ngrants: []\n', /^grants\.yaml:1: version /],
    ['no file at all', '', /^grants\.yaml:1: the file /],
  ])('is refused for %s, with the line', (_, text, message) => expect(whatIsWrong(text)).toMatch(message));

  it('says everything that is wrong at once, ten lines of it', () => {
    const many = Array.from(
      { length: 12 },
      (_, index) => `  - { id: g${index}, to: nobody, allow: [{ resource: "files:a", actions: [read] }] }`,
    );
    const said = whatIsWrong(grants(...many)).split('\n');
    expect(said).toHaveLength(11);
    expect(said.at(-1)).toBe('and 2 more');
  });

  it('is not taken apart by aliases that stand for each other a thousand times', () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefgh'.split('').map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`).join(',')}]`),
    ];
    expect(whatIsWrong(bomb.join('\n'))).toMatch(/alias/i);
  });

  it('shows nothing that a terminal would obey', () =>
    expect(whatIsWrong(grants('  - id: a', '    to: "\\u001b[2J"', '    allow: [{ resource: "files:a", actions: [read] }]'))).not.toContain(
      '\u001b',
    ));
});

describe('a file of assertions', () => {
  const assertion = (line: string): string => `version: 1\nassertions:\n  - ${line}\n`;
  const asked = 'to: read, resource: "files:a", for: human:alice, purpose: p';
  it.each<[string, string, RegExp]>([
    ['neither allow nor deny', `{ ${asked} }`, /^grants\.yaml:3: .*either allow or deny/],
    ['both', `{ allow: agent:a, deny: agent:a, ${asked} }`, /either allow or deny/],
    ['a code of what is allowed', `{ allow: agent:a, because: x, ${asked} }`, /only a refusal has a code/],
    [
      'nobody whose grants they are',
      `{ allow: agent:a, to: read, resource: "files:a", purpose: p }`,
      /^grants\.yaml:3: assertions\[0\]\.for /,
    ],
  ])('is refused for %s', (_, line, message) => expect(whatIsWrong(assertion(line), AssertionsFile)).toMatch(message));
});
