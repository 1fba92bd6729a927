-- How much sooner is TLS 1.3 done than TLS 1.2, in ms and in round trips, by class?
-- Differences of medians; drafts of TLS 1.3 do not count.
-- Uncertain ones are left out, but for doubts about the server's side alone.
SELECT
    class,
    count(CASE WHEN version_number = 771 THEN 1 END) AS handshakes_1_2,
    count(CASE WHEN version_number = 772 THEN 1 END) AS handshakes_1_3,
    median(CASE WHEN version_number = 771 THEN tls_handshake / 1e6 END) AS median_1_2_ms,
    median(CASE WHEN version_number = 772 THEN tls_handshake / 1e6 END) AS median_1_3_ms,
    median(CASE WHEN version_number = 771 THEN tls_handshake / 1e6 END)
        - median(CASE WHEN version_number = 772 THEN tls_handshake / 1e6 END) AS sooner_ms,
    median(CASE WHEN version_number = 771 THEN tls_round_trips END)
        - median(CASE WHEN version_number = 772 THEN tls_round_trips END) AS sooner_round_trips
FROM connections
WHERE tls_handshake IS NOT NULL
    AND replace(replace(replace(replace(replace(uncertain, 'ticket_or_data', ''),
        'server_speaks_first', ''), 'server_finished', ''), 'server_alert', ''), ',', '') = ''
GROUP BY class
ORDER BY class
