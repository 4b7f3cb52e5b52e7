// An agent in a process of its own: it reads the files that a message names, and tells what became of each.
//
//   SHAREDOS_NATS_URL=nats://localhost:4222 SHAREDOS_NATS_USER=… SHAREDOS_NATS_PASSWORD=… \
//   SHAREDOS_NAMESPACE=demo SHAREDOS_AGENT=assistant node examples/remote-agent.mjs
//
// Its turns come here where the registration of the agent says `remote`. See docs/remote-agents.md.
import { connectSharedOS, describeClientError } from '@sharedos/client';

const env = process.env;
const sharedos = await connectSharedOS({
  servers: env.SHAREDOS_NATS_URL,
  user: env.SHAREDOS_NATS_USER,
  password: env.SHAREDOS_NATS_PASSWORD,
  namespaceId: env.SHAREDOS_NAMESPACE,
  principal: { kind: 'agent', agentId: env.SHAREDOS_AGENT },
});

const running = await sharedos.agent(({ turn, input, memory, remember, call, complete }) => {
  const { paths } = turn.message.payload;
  const told = [...(memory.told ?? [])];
  if (input.type === 'tool_result') {
    const { result } = input;
    told.push(result.status === 'succeeded' ? result.output.content : result.error.code);
    remember({ told });
  }
  const path = paths[told.length];
  return path === undefined ? complete({ told }) : call('files.read', { path });
});
if (!running.ok) throw new Error(describeClientError(running.error));
console.log('deciding');

process.once('SIGTERM', async () => {
  await running.value.stop();
  await sharedos.close();
});
