-- Grows by one with each commit of the server: what a commit that reported an error came to is read
-- here.
ALTER TABLE server ADD COLUMN batch INTEGER NOT NULL DEFAULT 0;
-- Whether the last server ended in order; 0 also while one runs.
ALTER TABLE server ADD COLUMN ended INTEGER NOT NULL DEFAULT 1;
