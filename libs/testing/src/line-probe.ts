import { connect } from 'node:net';

const PROBE_TIMEOUT_MS = 1_000;

/** Connects, says `hello` and tells whether the answer begins as it must. The plainest check that the right server serves. */
export const answersWith = (port: number, hello: string, begins: RegExp): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    let heard = '';
    socket.setEncoding('utf8').setTimeout(PROBE_TIMEOUT_MS, () => end(false));
    socket.on('connect', () => {
      if (hello !== '') socket.write(hello);
    });
    socket.on('data', (chunk: string) => {
      heard += chunk;
      if (begins.test(heard)) end(true);
      else if (heard.length > 64 * 1024) end(false);
    });
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
  });
