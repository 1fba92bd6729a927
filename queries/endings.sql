-- How did connections end, by class, and how much did they carry?
-- Where a connection went on after its row was written, the ending row says how it ended.
SELECT
    coalesce(connections.class, 'no TLS') AS class,
    coalesce(endings.ended, connections.ended) AS ended,
    count(*) AS connections,
    sum(coalesce(endings.bytes_up, connections.bytes_up)) AS bytes_up,
    sum(coalesce(endings.bytes_down, connections.bytes_down)) AS bytes_down
FROM connections
LEFT JOIN endings ON endings.run = connections.run AND endings.number = connections.number
GROUP BY coalesce(connections.class, 'no TLS'), coalesce(endings.ended, connections.ended)
ORDER BY coalesce(connections.class, 'no TLS'), coalesce(endings.ended, connections.ended)
