-- Of how many connections is something uncertain, and why?
-- As share of all connections; one may have several reasons, of which 16 count.
SELECT
    doubted.reason,
    doubted.connections,
    CAST(doubted.connections AS DOUBLE) / total.connections AS share
FROM (
    SELECT reason, count(*) AS connections
    FROM (
        SELECT split_part(uncertain, ',', place) AS reason
        FROM connections
        CROSS JOIN (
            VALUES (1), (2), (3), (4), (5), (6), (7), (8),
                (9), (10), (11), (12), (13), (14), (15), (16)
        ) AS places(place)
        WHERE uncertain <> ''
    ) AS entries
    WHERE reason <> ''
    GROUP BY reason
) AS doubted
CROSS JOIN (
    SELECT count(*) AS connections FROM connections
) AS total
ORDER BY doubted.connections DESC, doubted.reason
