import { type Server, type Socket, connect, createServer } from 'node:net';

/** A port in front of a server. Everything goes through, unless it is told otherwise. */
export interface TcpFront {
  readonly port: number;
  /** From now on no byte passes in either direction, while connections stay open and new ones are taken. */
  blackHole(): void;
  /** From now on what clients send still arrives, and nothing comes back. */
  holdAnswers(): void;
  /** Bytes pass again; those that were held back come through, as they do when a cable is plugged in again. */
  heal(): void;
  /** Ends every connection at once. Clients may connect again. */
  cutConnections(): void;
  close(): Promise<void>;
}

interface Pair {
  readonly outside: Socket;
  readonly inside: Socket;
}

/** @param port Where clients connect, on the loopback interface; a free one for 0. */
export const openTcpFront = async (port: number, insidePort: number, insideHost = '127.0.0.1'): Promise<TcpFront> => {
  const pairs = new Set<Pair>();
  let held: (pair: Pair) => readonly Socket[] = () => [];
  const hold = (pair: Pair): void => held(pair).forEach((socket) => socket.pause());

  const server: Server = createServer((outside) => {
    const inside = connect({ host: insideHost, port: insidePort });
    const pair = { outside, inside };
    pairs.add(pair);
    for (const socket of [outside, inside]) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        outside.destroy();
        inside.destroy();
      });
    }
    pass(outside, inside);
    pass(inside, outside);
    hold(pair);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the front has no port');

  return {
    port: address.port,
    blackHole: () => {
      held = ({ outside, inside }) => [outside, inside];
      pairs.forEach(hold);
    },
    holdAnswers: () => {
      held = ({ inside }) => [inside];
      pairs.forEach(hold);
    },
    heal: () => {
      held = () => [];
      for (const { outside, inside } of pairs) for (const socket of [outside, inside]) socket.resume();
    },
    cutConnections: () => {
      for (const { outside } of pairs) outside.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const { outside } of pairs) outside.destroy();
      }),
  };
};

/** Not `pipe`: it would set a socket flowing again that was held. */
const pass = (from: Socket, to: Socket): void => {
  from.on('data', (chunk) => void to.write(chunk));
};
