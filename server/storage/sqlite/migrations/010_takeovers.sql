-- How often the trial ran on a worker that fell silent and whose name another process took.
ALTER TABLE trial ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0;
