-- How long did TLS handshakes take, by version and class?
-- Quantiles in ms of the handshake (ClientHello to the client's Finished); medians of the same in
-- round trips, of the round trip and of the think time that followed.
-- Uncertain ones are left out, but for doubts about the server's side alone.
SELECT
    version,
    class,
    count(*) AS handshakes,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY tls_handshake / 1e6) AS p10_ms,
    median(tls_handshake / 1e6) AS median_ms,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY tls_handshake / 1e6) AS p90_ms,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY tls_handshake / 1e6) AS p99_ms,
    median(tls_round_trips) AS median_round_trips,
    median(round_trip / 1e6) AS median_round_trip_ms,
    median(think / 1e6) AS median_think_ms
FROM connections
WHERE tls_handshake IS NOT NULL
    AND replace(replace(replace(replace(replace(uncertain, 'ticket_or_data', ''),
        'server_speaks_first', ''), 'server_finished', ''), 'server_alert', ''), ',', '') = ''
GROUP BY version, class
ORDER BY version, class
