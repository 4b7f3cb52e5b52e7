import { runCommandLine } from './program.ts';

/** Aborted when whoever reads our output has gone, as `head` does: then there is nothing left to say, and no error in it. */
const readerGone = new AbortController();
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (stream === process.stdout) readerGone.abort();
  });
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  cwd: process.cwd(),
  env: process.env,
  readerGone: readerGone.signal,
});
