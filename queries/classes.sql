-- What kinds of handshakes were there, by the version negotiated?
-- As share of that version's; `none` are those that failed before a version was known.
SELECT
    coalesce(version, 'none') AS version,
    class,
    count(*) AS connections,
    CAST(count(*) AS DOUBLE) / sum(count(*)) OVER (PARTITION BY coalesce(version, 'none')) AS share
FROM connections
WHERE class IS NOT NULL
GROUP BY coalesce(version, 'none'), class
ORDER BY coalesce(version, 'none'), class
