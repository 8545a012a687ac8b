-- How far a completed trial's metrics are from what the study's constraints allow; 0: feasible.
ALTER TABLE trial ADD COLUMN violation REAL NOT NULL DEFAULT 0;
