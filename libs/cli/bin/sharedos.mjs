#!/usr/bin/env node
// The command is TypeScript that Node runs as it is from 22.18 on. An older Node hands over to the one of the checkout.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const main = new URL('../src/main.ts', import.meta.url);
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const packaged = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url));

if (major > 22 || (major === 22 && minor >= 18)) {
  await import(main.href);
} else if (existsSync(packaged)) {
  const child = spawn(packaged, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' });
  // Ctrl-C reaches the child by itself; a signal sent to us alone is passed on, and we outlive the child in any case.
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`sharedos: ${error.message}\n`);
    process.exitCode = 3;
  });
  child.on('close', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
} else {
  process.stderr.write(
    `sharedos runs on Node 22.18 or newer and this is ${process.versions.node}: run "npm ci" in the checkout, which brings its own Node.\n`,
  );
  process.exitCode = 2;
}
