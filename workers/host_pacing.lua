-- One pace per host for all workers and tenants, on the server's clock.
-- KEYS: next free moment of the host, requests in flight at the host.
-- ARGV: interval in ms, concurrency, token, ms a request may count at most.
-- Answer: {1, ms to wait before the request} with a turn, {0, ms to wait before asking again}.
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local interval, concurrency = tonumber(ARGV[1]), tonumber(ARGV[2])

if concurrency > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
    if redis.call('ZCARD', KEYS[2]) >= concurrency then
        return {0, math.max(20, math.min(interval, 250))}
    end
end

local free = tonumber(redis.call('GET', KEYS[1]) or '0')
local start = math.max(now, free)
-- Nobody books a host for longer than this ahead: whoever must wait longer asks again.
if start - now > 10000 then
    return {0, 1000}
end
if interval > 0 then
    redis.call('SET', KEYS[1], start + interval, 'PX', start - now + interval + 1000)
end
if concurrency > 0 then
    redis.call('ZADD', KEYS[2], start + tonumber(ARGV[4]), ARGV[3])
    redis.call('PEXPIRE', KEYS[2], start - now + tonumber(ARGV[4]) + 1000)
end
return {1, start - now}
