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
 * KEYS: epoch, candidates, highest, free, operations, then one set of each turn named….
 * ARGV: candidate, highest, count of free ordinals, free ordinals…, count of turns, what each turn holds…, then operation and
 * ordinal in turn….
 */
const FILL = `
if not of_this_server(ARGV[1]) or redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('SET', KEYS[3], ARGV[2])
local free = tonumber(ARGV[3])
for at = 4, 3 + free do redis.call('ZADD', KEYS[4], ARGV[at], ARGV[at]) end
local turns = tonumber(ARGV[4 + free])
for at = 1, turns do redis.call('SADD', KEYS[5 + at], ARGV[4 + free + at]) end
for at = 5 + free + turns, #ARGV, 2 do redis.call('HSET', KEYS[5], ARGV[at], ARGV[at + 1]) end
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

/**
 * KEYS: epoch, turn, then highest, free and operations of each budget…. ARGV: epoch, operation, then the maximum of each budget and
 * what the turn holds of it, without the ordinal….
 * Replies an ordinal of each budget; or one number: -1 for a lost epoch, 0 for a turn that is over, -1 - n when budget n, counted
 * from 1, has none left.
 *
 * All budgets are looked at before any is taken from, so that a refused step takes nothing. A server that is out of memory refuses
 * the script at its start and not between two writes of it.
 */
const TAKE = `
if in_force() ~= ARGV[1] then return { -1 } end
if redis.call('SISMEMBER', KEYS[2], 'over') == 1 then return { 0 } end
local budgets = (#KEYS - 2) / 3
local ordinals = {}
for at = 1, budgets do
  local key = 3 * at
  local known = redis.call('HGET', KEYS[key + 2], ARGV[2])
  if known then
    ordinals[at] = tonumber(known)
  elseif redis.call('ZCARD', KEYS[key + 1]) == 0 and tonumber(redis.call('GET', KEYS[key]) or '0') >= tonumber(ARGV[1 + 2 * at]) then
    return { -1 - at }
  end
end
for at = 1, budgets do
  local key = 3 * at
  if not ordinals[at] then
    local hole = redis.call('ZRANGE', KEYS[key + 1], 0, 0)[1]
    local ordinal = hole and tonumber(hole) or redis.call('INCR', KEYS[key])
    local text = string.format('%d', ordinal)
    redis.call('HSET', KEYS[key + 2], ARGV[2], text)
    redis.call('SADD', KEYS[2], text .. ' ' .. ARGV[2 + 2 * at])
    if hole then redis.call('ZREM', KEYS[key + 1], hole) end
    ordinals[at] = ordinal
  end
end
return ordinals
`;

/** KEYS: epoch, then highest and free of each budget…. ARGV: epoch. Replies the uses handed out of each, or -1 for a lost epoch. */
const COUNT = `
if in_force() ~= ARGV[1] then return { -1 } end
local counts = {}
for at = 2, #KEYS, 2 do counts[at / 2] = tonumber(redis.call('GET', KEYS[at]) or '0') - redis.call('ZCARD', KEYS[at + 1]) end
return counts
`;

/** KEYS: epoch, turn. ARGV: epoch, how many at most. Replies what the turn holds, after a word on the epoch; the turn is over then. */
const HELD = `
if in_force() ~= ARGV[1] then return { 'lost' } end
redis.call('SREM', KEYS[2], 'over')
local held = redis.call('SRANDMEMBER', KEYS[2], ARGV[2])
redis.call('SADD', KEYS[2], 'over')
table.insert(held, 1, 'held')
return held
`;

/**
 * KEYS: epoch, turn, highest, free, operations. ARGV: epoch, operation, ordinal, what the turn holds. Replies 1, or -1 for a lost
 * epoch. The ordinal is free again only if this operation still has it.
 */
const RELEASE = `
if in_force() ~= ARGV[1] then return -1 end
if redis.call('HGET', KEYS[5], ARGV[2]) == ARGV[3] then
  redis.call('HDEL', KEYS[5], ARGV[2])
  redis.call('ZADD', KEYS[4], ARGV[3], ARGV[3])
end
redis.call('SREM', KEYS[2], ARGV[4])
return 1
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
  held: PRELUDE + HELD,
  release: PRELUDE + RELEASE,
} as const;

export type ScriptName = keyof typeof SCRIPTS;
