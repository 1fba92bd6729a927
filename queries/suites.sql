-- Which cipher suites and groups were negotiated, by version?
SELECT
    version,
    cipher_suite,
    coalesce(group_name, 'not reported') AS group_name,
    count(*) AS connections,
    CAST(count(*) AS DOUBLE) / sum(count(*)) OVER (PARTITION BY version) AS share
FROM connections
WHERE version IS NOT NULL
GROUP BY version, cipher_suite, coalesce(group_name, 'not reported')
ORDER BY version, connections DESC, cipher_suite, group_name
