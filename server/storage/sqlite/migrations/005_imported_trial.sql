-- Trials that another program ran to their end.
ALTER TABLE trial ADD COLUMN origin TEXT NOT NULL DEFAULT '';       -- where from; empty: from here
ALTER TABLE trial ADD COLUMN budgeted INTEGER NOT NULL DEFAULT 1;   -- 0: outside the budget
CREATE UNIQUE INDEX trial_by_origin ON trial (study_id, origin) WHERE origin <> '';
