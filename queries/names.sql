-- How long did handshakes take with the 20 host names asked for most?
SELECT
    coalesce(sni, 'none') AS name,
    count(*) AS connections,
    count(tls_handshake) AS handshakes,
    median(tls_handshake / 1e6) AS median_ms,
    median(tls_round_trips) AS median_round_trips
FROM connections
WHERE class IS NOT NULL
GROUP BY coalesce(sni, 'none')
ORDER BY connections DESC, name
LIMIT 20
