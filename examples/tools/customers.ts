// A tool of your own. Put its folder into SHAREDOS_TOOLS_FROM, its namespace into SHAREDOS_TOOL_NAMESPACES, and grant:
//   npx sharedos grant issue --to agent:scout --resource customers:acme --action read --purpose "prepare the call"
// Then scout may ask for the customer acme, and is refused every other.
import type { ToolHandler } from '@sharedos/tools';
import { z } from 'zod';

const Arguments = z.strictObject({ customerId: z.string().regex(/^[a-z0-9-]{1,64}$/) });

/** What a real tool would ask its own system for. */
const CUSTOMERS: Readonly<Record<string, { readonly name: string; readonly contact: string }>> = {
  acme: { name: 'Acme Stones', contact: 'Wile E.' },
  'blue-door': { name: 'Blue Door', contact: 'Ida' },
};

const readCustomer: ToolHandler = {
  definition: {
    name: 'customers.read',
    description: 'Read who a customer is and whom to call.',
    namespace: 'customers',
    source: 'native',
    readWrite: 'read',
    inputSchema: {
      type: 'object',
      additionalProperties: false,
      required: ['customerId'],
      properties: { customerId: { type: 'string', pattern: '^[a-z0-9-]{1,64}$' } },
    },
    // The ceiling: the most that any call of this tool could need. The call below needs one customer of it.
    requiredCapability: { resource: { namespace: 'customers', path: [] }, action: 'read' },
    annotations: { readOnly: true },
  },

  // Runs before the decision; what it throws is `invalid_tool_arguments`.
  parseArguments: (raw) => Arguments.parse(raw),

  // What is decided on: exactly the customer that the arguments name, whatever the model wrote beside it.
  resolveRequirement: (context, call) => ({
    resource: { namespace: 'customers', path: [String(call.arguments['customerId'])], owner: context.owner },
    action: 'read',
  }),

  invoke: async (context, call, cancel) => {
    cancel.throwIfAborted();
    const answered = { callId: call.id, tool: call.tool, completedAt: context.now };
    const customer = CUSTOMERS[String(call.arguments['customerId'])];
    if (customer !== undefined) return { ...answered, status: 'succeeded', output: { ...customer } };
    return { ...answered, status: 'failed', error: { code: 'customer_not_found', message: 'there is no such customer', retryable: false } };
  },
};

export const tools: readonly ToolHandler[] = [readCustomer];
