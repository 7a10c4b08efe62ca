-- Findings say their evidence in English and Chinese from here on: {"en": …, "zh": …}
-- where a text stood. Rows of both kinds are read. The tables stay as they are; the
-- step is for older programs, which would take such a row for a damaged one: they
-- leave a newer schema alone.
SELECT 1;
