-- Which alerts were sent first on a connection, by whom, and did the handshake fail?
SELECT
    alert,
    alert_level,
    alert_from,
    coalesce(version, 'none') AS version,
    count(*) AS connections,
    count(CASE WHEN class = 'failed' THEN 1 END) AS failed
FROM connections
WHERE alert IS NOT NULL
GROUP BY alert, alert_level, alert_from, coalesce(version, 'none')
ORDER BY connections DESC, alert, alert_level, alert_from, version
