-- Which versions do clients offer, drafts of TLS 1.3 among them?
-- As share of the ClientHellos; the shares add up to more than 1, for a client offers several. Of a
-- list the first 16 entries count: more than there are versions.
SELECT
    offered.version,
    offered.version LIKE '%draft%' AS draft,
    offered.hellos,
    CAST(offered.hellos AS DOUBLE) / total.hellos AS share
FROM (
    SELECT version, count(*) AS hellos
    FROM (
        SELECT split_part(versions_offered, ',', place) AS version
        FROM connections
        CROSS JOIN (
            VALUES (1), (2), (3), (4), (5), (6), (7), (8),
                (9), (10), (11), (12), (13), (14), (15), (16)
        ) AS places(place)
        WHERE versions_offered <> ''
    ) AS entries
    WHERE version <> ''
    GROUP BY version
) AS offered
CROSS JOIN (
    SELECT count(*) AS hellos FROM connections WHERE versions_offered <> ''
) AS total
ORDER BY offered.hellos DESC, offered.version
