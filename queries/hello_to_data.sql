-- How long did it take from ClientHello to the client's first application data, by version?
-- Handshake and think time together, as GREE 2018 measured; in bins of 10 ms, as share of that
-- version's connections. Uncertain ones are left out, but for doubts about the server's side alone.
SELECT
    version,
    bin * 10 AS from_ms,
    count(*) AS connections,
    CAST(count(*) AS DOUBLE) / sum(count(*)) OVER (PARTITION BY version) AS share
FROM (
    SELECT version, hello_to_data / 10000000 AS bin
    FROM connections
    WHERE hello_to_data IS NOT NULL AND tls_handshake IS NOT NULL
        AND replace(replace(replace(replace(replace(uncertain, 'ticket_or_data', ''),
            'server_speaks_first', ''), 'server_finished', ''), 'server_alert', ''), ',', '') = ''
) AS handshakes
GROUP BY version, bin
ORDER BY version, bin
