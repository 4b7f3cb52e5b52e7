import { connect } from 'node:net';

const ANSWER_MS = 5_000;

/** Sends one command to a Redis server past every client of ours. @returns The first line of its answer. */
export const redisCommand = (url: string, command: string): Promise<string> => {
  const { hostname, port, password } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    let heard = '';
    socket.setTimeout(ANSWER_MS, () => fail(new Error(`Redis did not answer ${command}`)));
    socket.on('error', fail);
    socket.on('data', (bytes) => {
      heard += bytes.toString('utf8');
      const [authenticated, answer, ...rest] = heard.split('\r\n');
      if (answer === undefined || rest.length === 0) return;
      socket.destroy();
      if (authenticated === '+OK') resolve(answer);
      else reject(new Error(`Redis refused the password: ${authenticated}`));
    });
    socket.write(`AUTH ${decodeURIComponent(password)}\r\n${command}\r\n`);
  });
};
