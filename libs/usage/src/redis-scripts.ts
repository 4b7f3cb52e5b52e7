/**
 * The Lua steps of the counters. Each compares the epoch before it does anything, in the same atomic step.
 *
 * An epoch is spelled `<run_id>-<number>-<nonce>`. The run id is read from the server inside the step, so an epoch that came
 * with a snapshot, a restart or a replica that was promoted is not in force anywhere; it costs 5 µs. Writes go from the safe to
 * the unsafe: a step cut short by a server out of memory may forget a free ordinal, but frees none.
 */
const PRELUDE = `
local function of_this_server(epoch)
  local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  return run_id and string.sub(epoch, 1, #run_id + 1) == run_id .. '-'
end
local function in_force()
  local epoch = redis.call('GET', KEYS[1])
  if epoch and of_this_server(epoch) then return epoch end
  return false
end
`;

/** KEYS: epoch. Replies the epoch in force, or nothing; and the eviction policy, since an evicted counter reads as a fresh one. */
const EPOCH = `
local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)')
return { in_force() or '', policy or '' }
`;

/** KEYS: epoch. ARGV: epoch. No candidate lives beside an epoch in force, so none is left that read what is distrusted. */
const REVOKE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
`;

/** KEYS: epoch, candidates, number. ARGV: nonce. Replies the new candidate, or nothing when an epoch is in force. */
const BEGIN = `
if in_force() then return '' end
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local candidate = run_id .. '-' .. string.format('%d', redis.call('INCR', KEYS[3])) .. '-' .. ARGV[1]
redis.call('SADD', KEYS[2], candidate)
return candidate
`;

/**
 * KEYS: epoch, candidates, highest, free, operations.
 * ARGV: candidate, highest, count of free ordinals, free ordinals…, then operation and ordinal in turn….
 */
const FILL = `
if not of_this_server(ARGV[1]) or redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('SET', KEYS[3], ARGV[2])
local free = tonumber(ARGV[3])
for at = 4, 3 + free do redis.call('ZADD', KEYS[4], ARGV[at], ARGV[at]) end
for at = 4 + free, #ARGV, 2 do redis.call('HSET', KEYS[5], ARGV[at], ARGV[at + 1]) end
return 1
`;

/** KEYS: epoch, candidates. ARGV: candidate. Replies the epoch in force afterwards, or nothing. */
const INSTALL = `
local epoch = in_force()
if epoch then return epoch end
if not of_this_server(ARGV[1]) or redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then return '' end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return ARGV[1]
`;

/** KEYS: epoch, then keys of other epochs. ARGV: epoch. While it is in force nobody can be filling another. */
const SWEEP = `
if in_force() ~= ARGV[1] then return 0 end
for at = 2, #KEYS do redis.call('UNLINK', KEYS[at]) end
return 1
`;

/** KEYS: epoch, highest, free, operations. ARGV: epoch, operation, max. Replies the ordinal, 0 for none left, -1 for a lost epoch. */
const TAKE = `
if in_force() ~= ARGV[1] then return -1 end
local known = redis.call('HGET', KEYS[4], ARGV[2])
if known then return tonumber(known) end
local hole = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
if hole then
  redis.call('HSET', KEYS[4], ARGV[2], hole)
  redis.call('ZREM', KEYS[3], hole)
  return tonumber(hole)
end
local highest = tonumber(redis.call('GET', KEYS[2]) or '0')
if highest >= tonumber(ARGV[3]) then return 0 end
local ordinal = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[4], ARGV[2], string.format('%d', ordinal))
return ordinal
`;

/** KEYS: epoch, highest, free. ARGV: epoch. Replies the uses handed out, -1 for a lost epoch. */
const COUNT = `
if in_force() ~= ARGV[1] then return -1 end
return tonumber(redis.call('GET', KEYS[2]) or '0') - redis.call('ZCARD', KEYS[3])
`;

export const SCRIPTS = {
  epoch: PRELUDE + EPOCH,
  revoke: PRELUDE + REVOKE,
  begin: PRELUDE + BEGIN,
  fill: PRELUDE + FILL,
  install: PRELUDE + INSTALL,
  sweep: PRELUDE + SWEEP,
  take: PRELUDE + TAKE,
  count: PRELUDE + COUNT,
} as const;

export type ScriptName = keyof typeof SCRIPTS;
