-- How far away are the 50 client networks with the most connections, and what do they get?
-- The share of TLS 1.3 is that of the handshakes that ended.
SELECT
    client_network,
    count(*) AS connections,
    median(round_trip / 1e6) AS median_round_trip_ms,
    median(tls_handshake / 1e6) AS median_handshake_ms,
    CAST(count(CASE WHEN version_number = 772 THEN tls_handshake END) AS DOUBLE)
        / nullif(count(tls_handshake), 0) AS tls_1_3_share
FROM connections
WHERE class IS NOT NULL
GROUP BY client_network
ORDER BY connections DESC, client_network
LIMIT 50
