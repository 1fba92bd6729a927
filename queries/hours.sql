-- How did it change over time? By the hour (UTC) and the version negotiated.
-- Uncertain ones are left out, but for doubts about the server's side alone.
SELECT
    date,
    hour,
    version,
    count(*) AS handshakes,
    median(tls_handshake / 1e6) AS median_ms,
    percentile_cont(0.9) WITHIN GROUP (ORDER BY tls_handshake / 1e6) AS p90_ms,
    median(round_trip / 1e6) AS median_round_trip_ms,
    CAST(count(CASE WHEN class IN ('resumed', 'zero_rtt') THEN 1 END) AS DOUBLE) / count(*) AS resumed_share
FROM connections
WHERE tls_handshake IS NOT NULL
    AND replace(replace(replace(replace(replace(uncertain, 'ticket_or_data', ''),
        'server_speaks_first', ''), 'server_finished', ''), 'server_alert', ''), ',', '') = ''
GROUP BY date, hour, version
ORDER BY date, hour, version
