-- Made once, kept by copies and backups: names this database among others that answer on the same
-- address at another time.
ALTER TABLE server ADD COLUMN database TEXT NOT NULL DEFAULT '';
UPDATE server SET database = lower(hex(randomblob(16)));
