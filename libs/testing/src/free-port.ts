import { createServer } from 'node:net';

const ATTEMPTS = 5;

/** A port of the loopback interface that is free now. Another process may take it before it is used: {@link onFreePort} tries again then. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no free port'))));
    });
  });

/** A port that looked free may be taken before the server has it: then another. */
export const onFreePort = async <Server>(start: (port: number) => Promise<Server>): Promise<readonly [server: Server, port: number]> => {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    try {
      return [await start(port), port];
    } catch (error) {
      if (attempt >= ATTEMPTS || !/address already in use|bind/i.test(String(error))) throw error;
    }
  }
};
