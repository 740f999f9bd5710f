-- One request against one bucket (GCRA), in whole microseconds on the server's own clock.
-- KEYS[1] the bucket; ARGV[1] microseconds per request, ARGV[2] microseconds of the whole window.
-- Answers {allowed, remaining, microseconds to wait, microseconds until the bucket is full}.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local before = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local after = before + interval
if after - now > window then
    return {0, 0, after - now - window, before - now}
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return {1, math.floor((window - (after - now)) / interval), 0, after - now}
