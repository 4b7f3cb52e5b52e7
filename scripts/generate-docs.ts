import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { apiCoveragePage, coverage } from './api-coverage/page.ts';
import { mutationsPage } from './mutate/page.ts';
import { SECTIONS } from './refusals/codes.ts';
import { refusalsPage } from './refusals/page.ts';
import { testsByCode } from './refusals/tests-by-code.ts';

const docs = join(import.meta.dirname, '..', 'docs');
const codes = SECTIONS.flatMap(({ refusals }) => refusals.map(({ code }) => code));
const tests = await testsByCode(codes);

await writeFile(join(docs, 'api-coverage.md'), apiCoveragePage(await coverage()));
await writeFile(join(docs, 'refusals.md'), refusalsPage(tests));
await writeFile(join(docs, 'mutations.md'), mutationsPage());
const untested = SECTIONS.flatMap(({ refusals }) => refusals).filter(({ code }) => !tests.has(code));
for (const { code } of untested) process.stdout.write(`no test produces ${code}\n`);
process.stdout.write(`docs: ${codes.length} codes, ${untested.length} of them still without a test\n`);
