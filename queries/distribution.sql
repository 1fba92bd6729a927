-- How long did TLS handshakes take, by version?
-- From ClientHello to the client's Finished, in bins of 10 ms, as share of that version's handshakes.
-- Uncertain connections are left out, but for doubts about the server's side alone: uncertain.sql counts
-- them.
SELECT
    version,
    bin * 10 AS from_ms,
    count(*) AS handshakes,
    CAST(count(*) AS DOUBLE) / sum(count(*)) OVER (PARTITION BY version) AS share
FROM (
    SELECT version, tls_handshake / 10000000 AS bin
    FROM connections
    WHERE tls_handshake IS NOT NULL
        AND replace(replace(replace(replace(replace(uncertain, 'ticket_or_data', ''),
            'server_speaks_first', ''), 'server_finished', ''), 'server_alert', ''), ',', '') = ''
) AS handshakes
GROUP BY version, bin
ORDER BY version, bin
