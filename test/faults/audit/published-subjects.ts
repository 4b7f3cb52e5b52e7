import { type Socket, connect, createServer } from 'node:net';

/** A port in front of a broker that notes what clients publish. */
export interface Tap {
  readonly port: number;
  /** The subject of every message that a client published through it, in order. */
  readonly subjects: readonly string[];
  close(): Promise<void>;
}

const LINE_END = '\r\n';

/** Opens a tap on a free port of the loopback interface. Everything goes through unchanged. */
export const openTap = async (brokerPort: number): Promise<Tap> => {
  const subjects: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const broker = connect({ host: '127.0.0.1', port: brokerPort });
    const read = publishedBy((subject) => subjects.push(subject));
    for (const socket of [client, broker]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        broker.destroy();
      });
    }
    client.on('data', (chunk) => {
      read(chunk);
      broker.write(chunk);
    });
    broker.on('data', (chunk) => void client.write(chunk));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the tap has no port');
  return {
    port: address.port,
    subjects,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};

/**
 * Reads what a client says to the broker: lines, of which `PUB subject [reply] bytes` and `HPUB subject [reply] headerBytes bytes` are
 * followed by so many bytes and a line end.
 */
const publishedBy = (onSubject: (subject: string) => void): ((chunk: Buffer) => void) => {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(LINE_END); end >= 0; end = rest.indexOf(LINE_END)) {
      const words = rest.subarray(0, end).toString('latin1').split(/\s+/);
      const isPublish = /^H?PUB$/i.test(words[0] ?? '');
      const next = end + LINE_END.length + (isPublish ? Number(words.at(-1)) + LINE_END.length : 0);
      if (rest.byteLength < next) return;
      if (isPublish) onSubject(words[1] ?? '');
      rest = rest.subarray(next);
    }
  };
};
